"""Runs on a real Slurm end once, and promptly: whatever starts the job again, and whatever a node does meanwhile."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podwright import launch
from podwright.engines.base import Request
from podwright.engines.slurm import SlurmEngine
from podwright.launch import Run
from podwright.spec import Pod, SlurmScheduler
from podwright.usage import gather
from tests.contract.sites import END_S, SlurmSite, until
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]
REJOIN_S, SILENCE_S = 3.0, 5.0
CYCLES_S = (10.0, 25.0)
"""How long a machine takes to come back from a power cycle."""


class ImpatientEngine(SlurmEngine):
    """An engine whose runs miss a node soon."""

    def plan(self, request: Request, facts: Any) -> Any:
        job = super().plan(request, facts)
        return replace(job, parts=tuple(replace(part, order=_impatient(part.order)) for part in job.parts))


def _impatient(order: Any) -> Any:
    return replace(order, rejoin_s=REJOIN_S, silence_s=SILENCE_S)


def impatient(pod: Pod, name: str | None) -> SlurmEngine:
    scheduler = pod.scheduler(name)
    assert isinstance(scheduler, SlurmScheduler)
    return ImpatientEngine(pod, scheduler)


def mend(site: SlurmSite) -> SlurmSite:
    """Whatever was struck before: Slurm may drain a node that was cut off when it is back."""

    def is_idle() -> bool:
        site.lab.heal()
        return set(site.lab.node_states().values()) == {"idle"}

    until(is_idle, "all nodes are idle")
    return site


@pytest.fixture
def healthy(slurm: SlurmSite) -> SlurmSite:
    return mend(slurm)


def job_state(site: SlurmSite, job: str) -> str:
    return site.slurm("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()


def ledger(site: SlurmSite, run: Run) -> list[list[str]]:
    path = site.lab.shared / "runs" / run.id / "ledger"
    return [line.split() for line in path.read_text().splitlines()]


def ended_once(site: SlurmSite, run: Run, ranks: int) -> None:
    """By the ledger of the ranks: each ended once, and none began after the first of the last attempt had ended."""
    rows = ledger(site, run)
    ends = [row for row in rows if row[1] == "end"]
    assert sorted(int(row[2]) for row in ends) == list(range(ranks)), rows
    assert len({row[3] for row in ends}) == 1, rows
    first_end = min(float(row[0]) for row in ends)
    assert all(float(row[0]) <= first_end for row in rows if row[1] == "begin" and row[3] != ends[0][3]), rows
    assert max(int(row[3]) for row in rows) == int(ends[0][3]), rows


@pytest.mark.parametrize(("arguments", "state", "code"), [("", "succeeded", 0), ("--fail-at 2", "failed", 77)])
def test_a_job_that_slurm_starts_after_the_end_starts_no_rank(
    healthy: SlurmSite, arguments: str, state: str, code: int
) -> None:
    """As a controller does that lost its last minutes: it says that the job was never restarted."""
    run = healthy.start(f"--steps 3 --ledger {arguments}", nodes=2)
    assert run.wait(END_S).state == state
    before, folder = ledger(healthy, run), healthy.lab.shared / "runs" / run.id
    (folder / "owner").unlink()
    script = 'sbatch --quiet --wait "$1"; echo "left with $?"'
    assert healthy.slurm("sh", "-c", script, "sh", str(folder / "job" / "batch.sh")).split("\n")[-2:] == [
        f"left with {code}",
        "",
    ]
    assert ledger(healthy, run) == before
    record = run.record()
    assert (record.state, record.attempts) == (state, 1)


def test_a_held_job_of_a_run_that_has_ended_is_cleaned(healthy: SlurmSite) -> None:
    run = healthy.start("--steps 3 --ledger")
    job = str(run.folder.handle)
    until(lambda: run.record().state == "succeeded", "it succeeds", END_S)

    def hold() -> bool:
        healthy.slurm("scontrol", "requeuehold", job)
        return job_state(healthy, job) == "PENDING"

    until(hold, "it is held", END_S)
    (queue,) = gather.queues(healthy.session, healthy.target)
    assert [row for row in queue.jobs if row.run == run.id] == []
    until(lambda: job_state(healthy, job) in ("CANCELLED", ""), "it is ended", END_S)
    assert run.record().state == "succeeded"
    ended_once(healthy, run, 1)


def test_a_node_that_is_back_before_slurm_misses_it_does_not_hold_the_run_up(healthy: SlurmSite) -> None:
    healthy.session = launch.Session(healthy.home, schedulers={"slurm": impatient})
    run = healthy.start("--steps 20 --hold-at 6 --ledger", nodes=2, grace="2s")
    healthy.wait_step(run, 6, rank=1)
    victim = run.record().hosts[1]
    healthy.lab.kill_node(victim)
    healthy.lab.heal(victim)
    record = run.wait(END_S)
    script = healthy.lab.shared / "runs" / run.id / "slurm.log"
    assert (record.state, record.attempts) == ("succeeded", 2), (record.reason, run.explain(), script.read_text())
    whys = [event["why"] for event in healthy.events(run, "given_back")]
    assert whys[0] == f"node 1 on {victim} was gone and did not come back within {SILENCE_S + REJOIN_S:g} s"
    ended_once(healthy, run, 2)


def test_a_matrix_is_cancelled_as_one(healthy: SlurmSite) -> None:
    run = healthy.start("--steps 600 --ledger", matrix="{a: [1, 2, 3, 4, 5, 6]}", grace="2s", slurm="{parallel: 4}")
    until(lambda: [point.record().state for point in run.points()].count("running") == 4, "four points run", END_S)
    assert run.cancel()
    record = run.wait(END_S)
    assert record.state == "cancelled", [(point.record().state, point.record().reason) for point in run.points()]
    assert (healthy.lab.shared / "runs" / run.id / "cancelled").exists()
    until(lambda: not healthy.processes(run), "all its processes end", END_S)
    for point in run.points():
        path = healthy.lab.shared / "runs" / point.id / "ledger"
        assert not path.exists() or "end" not in path.read_text()
        assert point.record().state == "cancelled"


# the campaign


@pytest.fixture(scope="session")
def patient_slurm() -> Iterator[Any]:
    """A controller that waits for a silent node as long as those of real sites do."""
    with slurm_lab(nodes=4, accounting=False, min_job_age_s=300, slurmd_timeout_s=300) as lab:
        yield lab


@pytest.fixture
def patient_site(patient_slurm: Any, tmp_path: Path) -> Iterator[SlurmSite]:
    site = SlurmSite(patient_slurm, tmp_path)
    yield site
    site.close()


def cycle_power(site: SlurmSite, chance: random.Random) -> Run:
    """A node, the leader's or another, goes away in the middle of a run and comes back soon."""
    run = site.start("--steps 120 --pause 0.25 --ledger", nodes=2, grace="2s")
    victim = chance.randrange(2)
    site.wait_step(run, chance.randint(2, 30), rank=victim)
    host = run.record().hosts[victim]
    site.lab.kill_node(host)
    time.sleep(chance.choice(CYCLES_S))
    site.lab.heal(host)
    return run


def kill_controller_at_allocation(site: SlurmSite, chance: random.Random) -> Run:
    """The controller forgets what it did last: it dies as it gives nodes away, and again half a minute later."""
    run = site.start("--steps 60 --pause 0.25 --ledger", nodes=chance.choice([1, 2]), grace="2s")
    until(lambda: "RUNNING" in site.slurm("squeue", "--noheader", f"--name={run.id}", "--format=%T"), "it is started")
    time.sleep(chance.uniform(0.0, 0.5))
    site.lab.kill_controller()
    site.lab.restart_controller()
    time.sleep(chance.uniform(25.0, 35.0))
    site.lab.restart_controller()
    return run


CAMPAIGN = {"power": cycle_power, "allocation": kill_controller_at_allocation}


@pytest.mark.nightly
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("lab", ["slurm", "patient_site"])
@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("kind", CAMPAIGN)
def test_every_run_ends_once(request: pytest.FixtureRequest, lab: str, kind: str, seed: int) -> None:
    site = mend(request.getfixturevalue(lab))
    chance = random.Random(f"{kind} {seed}")
    run = CAMPAIGN[kind](site, chance)
    mended = time.time()
    record = run.wait(1200)
    assert record.state == "succeeded", (record.reason, run.explain())
    ended_once(site, run, record.world_size)
    until(lambda: not site.slurm("squeue", "--noheader", f"--name={run.id}"), "no job of it is left", END_S)
    path = os.environ.get("PODWRIGHT_CAMPAIGN")
    if path:
        goes = [event["t"] for event in site.events(run, "go") if event["t"] > mended]
        went_on_s = round(min(goes) - mended, 1) if goes else None
        row = {"seed": seed, "victim": f"{lab} {kind}", "state": record.state, "attempts": record.attempts}
        with Path(path).open("a") as file:
            file.write(json.dumps({**row, "went_on_s": went_on_s}) + "\n")
