"""Cancelling a matrix of 200 running points on Slurm, against bare scancel of the same array.

    python benchmarks/slurm_cancel.py [--pairs 5] [--json OUT] [--points 200]

A lab of two nodes is started for it, which needs root. Both arms start the same matrix, wait until every rank runs, and
count the seconds from the command until the last rank is gone: `podwright cancel`, and `scancel` of the array's number
through a connection that is open already.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import podwright
from measure import BIN, alternate, compare, conclude, machine, parser, say, start
from slurm_submit import Site, quiet_lab

GOAL_RATIO = 2.0
START_S, END_S = 900.0, 300.0
OURS, BARE = "podwright cancel", "scancel of the array"
MARK = "86399.5"
"""How long a rank would sleep: no other process of this machine does so."""
WORKLOAD = """\
name: sweep
command: sleep {mark}
matrix: {{point: [{points}]}}
grace: 10s
resources: {{cpus: 1, memory: 64MiB}}
"""


def ranks() -> int:
    """How many ranks there are on this machine now."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += path.read_bytes() == f"sleep\0{MARK}\0".encode()
        except OSError:  # it ended meanwhile
            continue
    return count


def until(count: int, most_s: float) -> None:
    """Wait until there are so many ranks."""
    deadline = time.monotonic() + most_s
    while ranks() != count:
        if time.monotonic() > deadline:
            raise SystemExit(f"{ranks()} ranks instead of {count} after {most_s:.0f} s")
        time.sleep(0.02)


def measured(site: Site, path: Path, points: int, cancel: Callable[[podwright.Run], object]) -> float:
    """Seconds from the command to the end of the last rank; starting and clearing away are not counted."""
    run = podwright.run(podwright.load(path), on=site.lab.name)
    until(points, START_S)
    began = time.perf_counter()
    cancel(run)
    until(0, END_S)
    took = time.perf_counter() - began
    say(f"{took:.2f} s")
    run.wait(timeout_s=END_S)
    site.clear()
    return took


def ours(run: podwright.Run) -> None:
    """As a user would; it may be at its last words when the ranks are gone."""
    subprocess.Popen([BIN / "podwright", "cancel", run.id], stderr=subprocess.DEVNULL)


def bare(site: Site, run: podwright.Run) -> None:
    """The number of the array alone."""
    site.call(f"scancel {run.points()[0].folder.handle}")


def main() -> int:
    """Start a lab, then start and cancel in turn."""
    made = parser("Cancelling a matrix on Slurm against bare scancel.", pairs=5)
    made.add_argument("--points", type=int, default=200, help="points of the matrix (default: %(default)s)")
    options = made.parse_args()
    facts, count = machine(), options.points
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name, quiet_lab(Path(name)) as lab:
        path, site = Path(name, "sweep.yaml"), Site(lab, Path(name))
        path.write_text(WORKLOAD.format(mark=MARK, points=", ".join(map(str, range(count)))))
        site.call("true")
        arms = {
            OURS: partial(measured, site, path, count, ours),
            BARE: partial(measured, site, path, count, partial(bare, site)),
        }
        taken = alternate(arms, options.pairs, warm_up=False)
        site.close()
    rows = [compare(f"{count} running points / bare scancel", taken[OURS], taken[BARE], goal=GOAL_RATIO)]
    conclude("slurm_cancel", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
