"""By night: nodes of a real Slurm lose their power, its controller dies as it gives nodes away, and runs end once.

Seeded by the wave's number. Ten runs are struck at once, on a controller that misses a silent node soon, and on one
that waits five minutes for it, as those of real sites do. A wave alone is
`test_every_run_ends_once[slurm-power-300-2]`.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from podwright import launch
from podwright.lab.slurm.lab import SlurmLab
from tests.contract.campaign import Struck, at_once, cycle_power, finish
from tests.contract.sites import END_S, SlurmSite, mend, until
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.nightly, pytest.mark.timeout(1800)]
TIMEOUTS_S = {"slurm-power": None, "slurm-power-300": 300}
"""SlurmdTimeout of the labs; None: a few seconds."""
RUNS, WAVES = 10, 6


@pytest.fixture(scope="module", params=TIMEOUTS_S)
def place(request: pytest.FixtureRequest) -> Iterator[tuple[str, SlurmLab]]:
    timeout_s = TIMEOUTS_S[request.param]
    with slurm_lab(nodes=2 * RUNS, gpus=0, min_job_age_s=300, slurmd_timeout_s=timeout_s) as lab:
        yield request.param, lab


def lose_power(site: SlurmSite, chance: random.Random) -> list[Struck]:
    """A node of each run; none is to spare, so that a run goes on once its own is back."""
    fields = {"nodes": 2, "grace": "2s", "slurm": "{exclusive: true}"}
    runs = [site.start("--steps 200 --pause 0.25 --ledger", **fields) for _ in range(RUNS)]
    own = [launch.find(launch.Session(site.home), run.id) for run in runs]
    return at_once([partial(cycle_power, site, site.lab, run, random.Random(chance.random())) for run in own])


def lose_allocations(site: SlurmSite, chance: random.Random) -> list[Struck]:
    """The controller dies as it gives nodes away, and again half a minute later: it forgets what it did last."""
    sizes = [chance.choice([1, 2]) for _ in range(RUNS)]
    runs = [site.start("--steps 60 --pause 0.25 --ledger", nodes=nodes, grace="2s") for nodes in sizes]
    until(lambda: "RUNNING" in site.slurm("squeue", "--noheader", f"--name={runs[-1].id}", "--format=%T"), "it starts")
    time.sleep(chance.uniform(0.0, 0.5))
    site.lab.kill_controller()
    site.lab.restart_controller()
    time.sleep(chance.uniform(25.0, 35.0))
    site.lab.restart_controller()
    return [Struck(run, "controller twice", time.time()) for run in runs]


FAULTS = (lose_power, lose_allocations)


def requeue_s(site: SlurmSite) -> float:
    """How long this Slurm lets a job wait that was put back: as long as a credential counts, and a second."""
    lifetime = re.search(r"cred_expire=(\d+)", site.slurm("scontrol", "show", "config"))
    assert lifetime is not None, "the lab says how long"
    return int(lifetime[1]) + 1.0


@pytest.mark.parametrize("wave", range(WAVES))
def test_every_run_ends_once(place: tuple[str, SlurmLab], wave: int, tmp_path: Path) -> None:
    name, lab = place
    site = SlurmSite(lab, tmp_path)
    mend(lab)
    struck = FAULTS[wave % len(FAULTS)](site, random.Random(f"{name} {wave}"))
    finish(name, site, struck, lambda run: lab.shared / "runs" / run.id / "ledger", requeue_s(site))
    until(lambda: not site.slurm("squeue", "--noheader"), "no job is left", END_S)
    until(lambda: not any(site.processes(row.run) for row in struck), "no process is left", END_S)
