"""A function over 100 items on Slurm, to the last of its values: `podwright.map` against submitit's `map_array`.

    python benchmarks/map_submitit.py [--pairs 5] [--json OUT] [--items 100]

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

GOAL = 1.0
OURS, THEIRS = "podwright.map", "submitit map_array"
SCRIPT = """\
import sys, time
import submitit

def square(number):
    return number * number

count = int(sys.argv[1])
executor = submitit.SlurmExecutor(folder=sys.argv[2])
executor.update_parameters(time=10, cpus_per_task=1, array_parallelism=count)
began = time.perf_counter()
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


def theirs(lab: SlurmLab, count: int) -> float:
    """Seconds to the last value, as the script on the login node counts them."""
    folder = lab.shared / "submitit"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "map.py").write_text(SCRIPT)
    for path in (folder, folder / "map.py"):
        os.chown(path, lab.user.uid, lab.user.gid)
    done = lab.run([sys.executable, str(folder / "map.py"), str(count), str(folder / "jobs")])
    if done.returncode:
        raise SystemExit(f"submitit: {done.stderr.strip()}")
    return float(done.stdout)


def main() -> int:
    """Start a lab, then map in turn."""
    made = parser("A function over many items on Slurm against submitit.", pairs=5)
    made.add_argument("--items", type=int, default=100, help="items to map over (default: %(default)s)")
    options = made.parse_args()
    facts, count = machine(), options.items
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name, quiet_lab(Path(name), nodes=4) as lab:
        arms = {OURS: partial(ours, lab.name, count), THEIRS: partial(theirs, lab, count)}
        taken = alternate(arms, options.pairs, warm_up=options.pairs > 1)
    rows = [compare(f"podwright.map / submitit, {count} items", taken[OURS], taken[THEIRS], goal=GOAL)]
    conclude("map_submitit", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
