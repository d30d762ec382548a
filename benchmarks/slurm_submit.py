"""A matrix of 1,000 points on Slurm: accepted through the Python API, against bare sbatch; and what following it asks.

    python benchmarks/slurm_submit.py [--pairs 5] [--json OUT] [--points 1000]

A lab of two nodes is started for it, which needs root. All arms go through one connection to the same login node and
submit jobs that are held, so that nothing but submitting is measured: `podwright.run` of a matrix (with a folder, an
order and a token for each point), one `sbatch --array`, and a loop of as many sbatch. While the points are followed,
the controller itself counts the questions about jobs that reach it (sdiag).
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import podwright
from measure import Row, alternate, bootstrap, compare, conclude, machine, mean_of_middle, parser, say, start
from podwright.lab.slurm import lab as slurm
from podwright.lab.slurm.lab import SlurmLab
from podwright.lab.slurm.site import CONTROLLER
from podwright.launch import pods
from podwright.runs import Home

GOAL_RATIO, GOAL_EXTRA_S = 1.2, 2.0
GOAL_RPCS = 1.0
FLOOR_S = 2.0
"""The controller may be asked once in this time, however many jobs are followed."""
WINDOW_S = 20.0
QUESTIONS = re.compile(r"REQUEST_JOB(?:_USER)?_INFO\s.*count:(\d+)")
OURS, ARRAY, LOOP = "podwright.run", "sbatch --array", "sbatch, one by one"
WORKLOAD = """\
name: sweep
command: "true"
matrix: {{point: [{points}]}}
slurm: {{options: ["--hold"]}}
"""
SCRIPT = """\
#!/bin/sh
true
"""
ONE = "sbatch --quiet --hold --output=/dev/null"


@contextmanager
def quiet_lab(folder: Path, nodes: int = 2) -> Iterator[SlurmLab]:
    """A lab that is made known under its name in a home of its own."""
    lab = slurm.up(folder / "lab", nodes=nodes, min_job_age_s=5)
    try:
        os.environ["PODWRIGHT_HOME"] = str(folder / "home")
        pods.add(Home.open(), lab.pod_file)
        yield lab
    finally:
        lab.down()


class Site:
    """The login node of the lab through one connection, which is opened before the clock starts."""

    def __init__(self, lab: SlurmLab, folder: Path) -> None:
        self.lab = lab
        options = ["ControlMaster=auto", f"ControlPath={folder}/ssh", "ControlPersist=600"]
        words = [word for option in options for word in ("-o", option)]
        self._ssh = ["ssh", "-F", str(lab.ssh_config), *words, lab.name]

    def call(self, line: str, give: str = "") -> str:
        done = subprocess.run([*self._ssh, line], input=give, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{line}: {done.stderr.strip()}")
        return done.stdout

    def close(self) -> None:
        subprocess.run([*self._ssh[:-1], "-O", "exit", self.lab.name], capture_output=True, check=False)

    def clear(self) -> None:
        """What was submitted goes, before the next arm begins."""
        self.call("scancel --me")
        while self.call("squeue --noheader --me --states=PENDING,RUNNING,COMPLETING"):
            time.sleep(0.2)


def measured(site: Site, submit: Callable[[], object]) -> float:
    """Seconds until everything is accepted; clearing away is not counted."""
    began = time.perf_counter()
    submit()
    took = time.perf_counter() - began
    site.clear()
    return took


def questions(lab: SlurmLab) -> int:
    """How often the controller was asked about jobs since its counters were last put to zero."""
    said = lab.machines.run(CONTROLLER, ["sdiag"]).stdout
    return sum(map(int, QUESTIONS.findall(said)))


def followed(site: Site, path: Path, windows: int) -> tuple[list[float], float]:
    """Questions for each two seconds, window by window, while a matrix is followed; and the cores it takes."""
    run = podwright.run(podwright.load(path), on=site.lab.name)
    run.record()
    rates, cpu_s, began = [], time.process_time(), time.monotonic()
    for _ in range(windows):
        site.lab.machines.run(CONTROLLER, ["sdiag", "--reset"])
        since = time.monotonic()
        run.wait_at_most(WINDOW_S)
        rates.append(questions(site.lab) * FLOOR_S / (time.monotonic() - since))
        say(f"followed for {time.monotonic() - since:.0f} s: {rates[-1]:.2f} questions each {FLOOR_S:.0f} s")
    share = (time.process_time() - cpu_s) / (time.monotonic() - began)
    site.clear()
    return rates, share


def main() -> int:
    """Start a lab, submit in turn, then follow."""
    made = parser("A matrix on Slurm against bare sbatch.", pairs=5)
    made.add_argument("--points", type=int, default=1000, help="points of the matrix (default: %(default)s)")
    options = made.parse_args()
    facts, count = machine(), options.points
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name, quiet_lab(Path(name)) as lab:
        path, site = Path(name, "sweep.yaml"), Site(lab, Path(name))
        path.write_text(WORKLOAD.format(points=", ".join(map(str, range(count)))))
        site.call("cat >batch.sh", SCRIPT)
        loop = f"for i in $(seq {count}); do {ONE} batch.sh || exit 1; done"
        arms = {
            OURS: partial(measured, site, lambda: podwright.run(podwright.load(path), on=lab.name)),
            ARRAY: partial(measured, site, partial(site.call, f"{ONE} --array=1-{count} batch.sh")),
            LOOP: partial(measured, site, partial(site.call, loop)),
        }
        taken = alternate(arms, options.pairs, warm_up=options.pairs > 1)
        rates, cpu_share = followed(site, path, max(1, options.pairs))
        site.close()
    allowed = [GOAL_RATIO * took + GOAL_EXTRA_S for took in taken[ARRAY]]
    rows = [
        compare(f"{count} points / ({GOAL_RATIO:g} x one array + {GOAL_EXTRA_S:g} s)", taken[OURS], allowed, goal=1.0),
        compare(f"{count} points / {count} sbatch", taken[OURS], taken[LOOP], goal=1.0),
        Row("questions to the controller each 2 s", bootstrap(rates, mean_of_middle), "", GOAL_RPCS),
    ]
    conclude("slurm_submit", rows, {"seconds": taken, "questions": rates, "cores": cpu_share}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
