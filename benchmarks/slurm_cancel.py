"""Cancelling a matrix of 200 running points on Slurm, against bare scancel of the same array.

    python benchmarks/slurm_cancel.py [--pairs 5] [--json OUT] [--points 200]

A lab of two nodes is started for it, which needs root. Both arms start the same matrix, wait until every rank runs, and
count the seconds from the command until the last rank is gone: `podwright cancel`, and `scancel` of the array's number
through a connection that is open already.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import podwright
from cancelling import GOAL_RATIO, OURS, measured, ours, write_matrix
from measure import alternate, compare, conclude, machine, parser, start
from slurm_submit import Site, quiet_lab

BARE = "scancel of the array"


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
        write_matrix(path, count)
        site.call("true")
        arms = {
            OURS: partial(measured, lab.name, path, count, ours, site.clear),
            BARE: partial(measured, lab.name, path, count, partial(bare, site), site.clear),
        }
        taken = alternate(arms, options.pairs, warm_up=False)
        site.close()
    rows = [compare(f"{count} running points / bare scancel", taken[OURS], taken[BARE], goal=GOAL_RATIO)]
    conclude("slurm_cancel", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
