"""A function over 100 items on Slurm, to the last of its values: `podwright.map` against submitit's `map_array`.

    python benchmarks/map_submitit.py [--pairs 5] [--json OUT] [--items 100] [--single]

With `--single` they are futures that are submitted one by one: `podwright.Executor` against submitit's `submit`.

A lab of four nodes is started for it, which needs root. Both arms are one array of the same Slurm, whose tasks have a
core each. submitit works on the login node, as it has to; Podwright through its connection from outside, as lab-slurm
is given. Neither's imports are counted. Only Podwright also samples, keeps logs and records, and brings them here.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import podwright
from measure import alternate, compare, conclude, machine, parser, start
from podwright.lab.slurm.lab import SlurmLab
from slurm_submit import quiet_lab

GOAL, SINGLE_GOAL = 1.0, 1.1
OURS, THEIRS = "podwright", "submitit"
SCRIPT = """\
import sys, time
import submitit

def square(number):
    return number * number

count = int(sys.argv[1])
executor = submitit.SlurmExecutor(folder=sys.argv[2])
executor.update_parameters(time=10, cpus_per_task=1, array_parallelism=count)
began = time.perf_counter()
if sys.argv[3] == "single":
    jobs = [executor.submit(square, number) for number in range(count)]
else:
    jobs = executor.map_array(square, range(count))
values = [job.result() for job in jobs]
took = time.perf_counter() - began
assert values == [number * number for number in range(count)]
print(took)
"""


def square(number: int) -> int:
    """What is mapped: nothing but the start, the way and the end of it is measured."""
    return number * number


def ours(target: str, count: int) -> float:
    """Seconds to the last value."""
    began = time.perf_counter()
    values = list(podwright.map(square, range(count), on=target, cpus=1, python=sys.executable))
    took = time.perf_counter() - began
    if sorted(values) != [number * number for number in range(count)]:
        raise SystemExit(f"podwright.map: {len(values)} values, not those of {count} items")
    return took


def our_futures(target: str, count: int) -> float:
    """Seconds to the last value of futures that are submitted one by one."""
    began = time.perf_counter()
    with podwright.Executor(target, count, trust=True, cpus=1, python=sys.executable) as pool:
        values = [future.result() for future in [pool.submit(square, number) for number in range(count)]]
        took = time.perf_counter() - began
    if values != [number * number for number in range(count)]:
        raise SystemExit(f"podwright.Executor: {len(values)} values, not those of {count} calls")
    return took


def theirs(lab: SlurmLab, count: int, form: str) -> float:
    """Seconds to the last value, as the script on the login node counts them."""
    folder = lab.shared / "submitit"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "map.py").write_text(SCRIPT)
    for path in (folder, folder / "map.py"):
        os.chown(path, lab.user.uid, lab.user.gid)
    done = lab.run([sys.executable, str(folder / "map.py"), str(count), str(folder / "jobs"), form])
    if done.returncode:
        raise SystemExit(f"submitit: {done.stderr.strip()}")
    return float(done.stdout)


def main() -> int:
    """Start a lab, then map in turn."""
    made = parser("A function over many items on Slurm against submitit.", pairs=5)
    made.add_argument("--items", type=int, default=100, help="items to map over (default: %(default)s)")
    made.add_argument("--single", action="store_true", help="futures, submitted one by one")
    options = made.parse_args()
    facts, count, form = machine(), options.items, "single" if options.single else "array"
    mine = our_futures if options.single else ours
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name, quiet_lab(Path(name), nodes=4) as lab:
        arms = {OURS: partial(mine, lab.name, count), THEIRS: partial(theirs, lab, count, form)}
        taken = alternate(arms, options.pairs, warm_up=options.pairs > 1)
    what = f"podwright.{'Executor' if options.single else 'map'} / submitit, {count} items"
    rows = [compare(what, taken[OURS], taken[THEIRS], goal=SINGLE_GOAL if options.single else GOAL)]
    conclude("futures_submitit" if options.single else "map_submitit", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
