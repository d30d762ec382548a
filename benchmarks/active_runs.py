"""200 running points on Slurm: what following them asks of the controller, against squeue at the same interval.

    python benchmarks/active_runs.py [--pairs 5] [--json OUT] [--points 200]

A lab of two nodes is started for it, which needs root. All ranks run and only sleep. In turn, for half a minute each,
they are followed by `Run.wait`, and listed by `squeue --me` every two seconds, both through connections that are open
already. The controller counts the questions about jobs that reach it (sdiag), this machine the processor time of the
client and of its ssh.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import podwright
from cancelling import END_S, LOOK_S, START_S, until, write_matrix
from measure import Row, alternate, conclude, machine, parser, ratio, start
from podwright.lab.slurm.lab import SlurmLab
from podwright.lab.slurm.site import CONTROLLER
from slurm_submit import FLOOR_S, Site, questions, quiet_lab

WINDOW_S = 30.0
GOAL_QUESTIONS, GOAL_CPU = 1.0, 2.0
OURS, BARE = "Run.wait", "squeue --me"


def cpu_s() -> float:
    """Processor time of this process and of the children that it has waited for."""
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


def listed(site: Site) -> None:
    """The list of all jobs again and again, as often as our follower may ask."""
    until_s = time.monotonic() + WINDOW_S
    while time.monotonic() < until_s:
        site.call("squeue --me --noheader --array")
        time.sleep(FLOOR_S)


def asked(lab: SlurmLab, look: Callable[[], object], spent: list[float]) -> float:
    """Questions a minute while somebody looks; what that takes of a core is noted."""
    lab.machines.run(CONTROLLER, ["sdiag", "--reset"])
    began, cpu = time.monotonic(), cpu_s()
    look()
    took = time.monotonic() - began
    spent.append((cpu_s() - cpu) / took)
    return questions(lab) * 60 / took


def against(what: str, ours: list[float], theirs: list[float], unit: str, goal: float) -> Row:
    """The ratio of two rates, with the medians behind it."""
    seen = f"{statistics.median(ours):.3g} / {statistics.median(theirs):.3g} {unit}"
    return Row(what, ratio(ours, theirs), goal=goal, seen=seen)


def main() -> int:
    """Start a lab and the points, then look in turn."""
    made = parser("Following running points on Slurm against squeue.", pairs=5)
    made.add_argument("--points", type=int, default=200, help="points of the matrix (default: %(default)s)")
    options = made.parse_args()
    facts, count = machine(), options.points
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name, quiet_lab(Path(name)) as lab:
        path, site = Path(name, "sweep.yaml"), Site(lab, Path(name))
        write_matrix(path, count)
        site.call("true")
        run = podwright.run(podwright.load(path), on=lab.name)
        until(count, START_S, run.record, every_s=LOOK_S)
        cores: dict[str, list[float]] = {OURS: [], BARE: []}
        arms = {
            OURS: partial(asked, lab, partial(run.wait_at_most, WINDOW_S), cores[OURS]),
            BARE: partial(asked, lab, partial(listed, site), cores[BARE]),
        }
        taken = alternate(arms, options.pairs, warm_up=False)
        run.cancel()
        run.wait_at_most(END_S)
        site.close()
    rows = [
        against(f"{count} running points: questions / squeue", taken[OURS], taken[BARE], "a minute", GOAL_QUESTIONS),
        against("its client's processor time / squeue", cores[OURS], cores[BARE], "of a core", GOAL_CPU),
    ]
    conclude("active_runs", rows, {"questions a minute": taken, "cores": cores}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
