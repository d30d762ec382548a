"""Faults on a real Slurm cluster: one of each kind here, a hundred at random in the long campaign.

Whatever is struck, no run is lost or doubled, none ends wrong, and what was stopped goes on from its checkpoint.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.launch import Run
from podwright.runs import Record
from tests.contract.sites import END_S, SlurmSite, mend, until

pytestmark = pytest.mark.slurm
STEPS = 60
REGISTER_S = 240.0
CLIENT = """
import sys
from pathlib import Path
from podwright import launch, spec
from podwright.runs import Home
launch.start(launch.Session(Home.open(Path(sys.argv[1]))), spec.load_workload(sys.argv[2]), sys.argv[3])
"""


@pytest.fixture(autouse=True)
def healthy(slurm: SlurmSite) -> None:
    mend(slurm.lab)


class AtOnce(random.Random):
    """Chance that never lets time pass: what is struck is struck as soon as it is there."""

    def uniform(self, a: float, b: float) -> float:
        return a


def counting(site: SlurmSite, step: int, chance: random.Random, pause_s: float = 0.1, **fields: object) -> Run:
    """A run that is to be struck after a step: it waits there, unless chance shall pick the moment."""
    arguments = f"--steps {STEPS} --pause {pause_s}"
    if isinstance(chance, AtOnce):
        arguments = f"--steps {STEPS} --hold-at {step}"
    return site.start(arguments, nodes=2, retries=1, grace="2s", **fields)


def went_on(site: SlurmSite, run: Run, rank: int) -> Record:
    """The run succeeded in its second attempt, which this rank began where it had been stopped."""
    record = run.wait(END_S)
    script = site.lab.shared / "runs" / run.id / "slurm.log"
    assert (record.state, record.attempts) == ("succeeded", 2), (record.reason, run.explain(), script.read_text())
    newest = max(tuple(go["e"]) for go in site.events(run, "go"))
    steps = [told for told in site.told(run, "step") if told.rank == rank]
    told = [int(step.value) for step in steps if (step.restart, step.retry) == newest]
    before = [step.value for step in steps if (step.restart, step.retry) < newest]
    assert told == list(range(told[0], STEPS + 1)), "the last attempt counts without a gap to the end"
    assert before, "there was an attempt before"
    assert told[0] > 1, "and it was not begun anew"
    assert record.results["step"] == STEPS
    return record


def at_work(site: SlurmSite, run: Run) -> list[int]:
    """Ranks of the run that are alive."""
    return [pid for pid in site.processes(run) if b"count.py" in words_of(pid)]


def words_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def nothing_stays(site: SlurmSite, run: Run) -> None:
    """What stays is named. A node that comes back keeps its old srun until Slurm asks it next what it runs."""
    try:
        until(lambda: not site.processes(run), "all its processes end", REGISTER_S)
    except AssertionError as error:
        left = {pid: words_of(pid).replace(b"\0", b" ").decode(errors="replace") for pid in site.processes(run)}
        raise AssertionError(f"{error}: {left}") from None


def jobs_of(site: SlurmSite, run: Run) -> list[str]:
    return site.slurm("squeue", "--noheader", "--states=all", f"--name={run.id}", "--format=%F").split()


def lose_a_node(site: SlurmSite, chance: random.Random) -> list[Run]:
    step, victim = chance.randint(2, 12), chance.randrange(2)
    run = counting(site, step, chance)
    site.wait_step(run, step, victim)
    site.lab.kill_node(run.record().hosts[victim])
    try:
        went_on(site, run, victim)
    finally:
        site.lab.heal()
    nothing_stays(site, run)
    return [run]


def cut_a_node_off(site: SlurmSite, chance: random.Random) -> list[Run]:
    """The old copy lives on behind the cut and still sees the shared folder: it must find that it was replaced.

    It counts slowly enough to be at it still when Slurm has found out and started the run elsewhere.
    """
    step, victim = chance.randint(1, 4), chance.randrange(2)
    run = counting(site, step, chance, pause_s=1.2)
    site.wait_step(run, step, victim)
    hosts = run.record().hosts
    site.lab.cut_node(hosts[victim])
    try:
        record = went_on(site, run, victim)
        assert hosts[victim] not in record.hosts
        until(lambda: not at_work(site, run), "the old copy finds that it was replaced, before the cut is healed")
    finally:
        site.lab.heal()
    nothing_stays(site, run)
    return [run]


def lose_the_controller(site: SlurmSite, chance: random.Random) -> list[Run]:
    """It dies while a job is being given to it, and comes back a little later."""
    site.slurm("sinfo")
    started: list[Run] = []

    def start() -> None:
        started.append(site.start("--steps 3"))

    client = threading.Thread(target=start)
    first = chance.random() < 0.5
    if first:
        site.lab.kill_controller()
    client.start()
    time.sleep(chance.uniform(0.0, 1.0))
    if not first:
        site.lab.kill_controller()
    time.sleep(chance.uniform(0.0, 2.0))
    site.lab.restart_controller()
    client.join(END_S)
    [run] = started
    assert run.wait(END_S).state == "succeeded", run.explain()
    jobs = set(jobs_of(site, run))
    assert len(jobs) <= 1, "one run is one job"
    assert len(site.events(run, "go")) == 1
    if not jobs:
        start_anew(site, run)
    return [run]


def start_anew(site: SlurmSite, run: Run) -> None:
    """A controller that forgot a job gives its number away again, which the node that ran it would not take."""
    for host in run.record().hosts:
        site.lab.kill_node(host)
    site.lab.heal()


def lose_the_client(site: SlurmSite, chance: random.Random) -> list[Run]:
    """Somewhere between its first file and the answer of sbatch."""
    site.workload("--steps 3")
    command = [sys.executable, "-c", CLIENT, str(site.home.path), str(site.folder / "workload.yaml"), site.target]
    before = set(site.home.all_ids())
    client = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: set(site.home.all_ids()) - before or client.poll() is not None, "the run has a folder")
    time.sleep(chance.uniform(0.0, 0.6))
    client.kill()
    client.wait()
    runs = [site.adopt(run_id) for run_id in set(site.home.all_ids()) - before]
    for run in runs:
        assert run.wait(END_S).state == "succeeded", run.explain()
        assert len(set(jobs_of(site, run))) <= 1
        assert len(site.events(run, "go")) == 1
    return runs


def end_a_slice(site: SlurmSite, chance: random.Random) -> list[Run]:
    """Slurm's warning, as it comes before the time of a slice is over."""
    step = chance.randint(2, 12)
    run = counting(site, step, chance, slurm="{time: 10m}")
    site.wait_step(run, step, rank=0)
    site.slurm("scancel", "--batch", "--signal=USR2", *set(jobs_of(site, run)))
    went_on(site, run, 0)
    nothing_stays(site, run)
    assert "its slice of time is over" in [event["why"] for event in site.events(run, "given_back")]
    return [run]


KINDS: dict[str, Callable[[SlurmSite, random.Random], list[Run]]] = {
    "node": lose_a_node,
    "cut": cut_a_node_off,
    "controller": lose_the_controller,
    "client": lose_the_client,
    "slice": end_a_slice,
}


@pytest.mark.xdist_group("slurm")
@pytest.mark.parametrize("kind", KINDS)
def test_one_fault_of_each_kind(slurm: SlurmSite, kind: str) -> None:
    runs = KINDS[kind](slurm, AtOnce(kind))
    assert {run.record().state for run in runs} == {"succeeded"}


@pytest.mark.xdist_group("slurm")
def test_a_job_that_the_controller_forgot_is_given_again(slurm: SlurmSite) -> None:
    """It had taken the job, and died before it had saved that."""
    run = slurm.start("--steps 3", slurm='{options: ["--begin=now+10"]}')
    slurm.lab.kill_controller()
    for path in (slurm.lab.folder / "state").glob("job_state*"):
        path.unlink()
    slurm.lab.restart_controller()
    assert run.wait(END_S).state == "succeeded", run.explain()
    assert [event.kind for event in run.folder.client_events()].count("submitted") == 2
    assert len(slurm.events(run, "go")) == 1


@pytest.mark.xdist_group("slurm")
def test_a_run_of_one_node_that_was_switched_off_and_on_is_put_back_by_whoever_looks(slurm: SlurmSite) -> None:
    """Nobody of it is left to say so, and Slurm believes for minutes that it runs."""
    run = slurm.start(f"--steps {STEPS} --hold-at 6", retries=1)
    slurm.wait_step(run, 6)
    slurm.lab.kill_node(run.record().hosts[0])
    slurm.lab.heal()
    until(lambda: run.record().reason.startswith("no word from "), "it says that nothing is heard of it", END_S)
    went_on(slurm, run, 0)
    assert (slurm.lab.shared / "runs" / run.id / "put_back.0").is_dir()
    nothing_stays(slurm, run)


def test_a_spare_takes_the_place_of_a_lost_node_and_the_job_goes_on(slurm: SlurmSite) -> None:
    """Neither the queue nor Slurm's own patience is in the way: the job that began ends the run."""
    run = slurm.start(f"--steps {STEPS} --hold-at 6", nodes=2, spares=1, grace="2s")
    for rank in (0, 1):
        slurm.wait_step(run, 6, rank)
    slurm.lab.kill_node(run.record().hosts[1])
    record = went_on(slurm, run, 1)
    first, second = slurm.events(run, "go")
    assert (first["waiting"], second["waiting"]) == ([2], [])
    assert slurm.events(run, "retry")[0]["lost"] == 1
    assert not (slurm.lab.shared / "runs" / run.id / "start.1").exists(), "it was not put back into the queue"
    assert record.hosts == tuple(first["hosts"])
    slurm.lab.heal()
    nothing_stays(slurm, run)


def test_a_run_that_lost_its_leader_and_finds_no_other_node_waits(slurm: SlurmSite) -> None:
    """Nobody was left to write that it was stopped: Slurm's word counts."""
    run = slurm.start(f"--steps {STEPS} --hold-at 6", nodes=4, grace="2s", slurm="{exclusive: true}")
    slurm.wait_step(run, 6, rank=0)
    slurm.lab.kill_node(run.record().hosts[0])
    # Members that live on may say first that their leader is gone; Slurm puts the job back a moment later.
    queued = ("waits", "may not start yet")
    until(lambda: run.record().reason.startswith(queued), "it is back in the queue", END_S)
    assert run.record().state == "pending"
    slurm.lab.heal()
    went_on(slurm, run, 0)
    nothing_stays(slurm, run)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.xdist_group(f"slurm-faults-{seed % 4}")) for seed in range(100)]
)
def test_faults_at_random(slurm: SlurmSite, seed: int) -> None:
    chance = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    began = time.monotonic()
    runs = KINDS[kind](slurm, chance)
    assert {run.record().state for run in runs} <= {"succeeded"}
    path = os.environ.get("PODWRIGHT_CAMPAIGN")
    if path:
        attempts = max((run.record().attempts for run in runs), default=1)
        row = {"seed": seed, "victim": f"slurm {kind}", "hit": bool(runs), "state": "succeeded", "attempts": attempts}
        with Path(path).open("a") as file:
            file.write(json.dumps({**row, "took_s": round(time.monotonic() - began)}) + "\n")


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.xdist_group("slurm-slice")
def test_slurm_itself_ends_a_slice(slurm: SlurmSite) -> None:
    """The time limit comes for real: Slurm warns, the ranks write their checkpoint, the job waits and goes on."""
    run = slurm.start("--steps 1500 --pause 0.2", grace="5s", slurm="{time: 4m}", time_limit="20m")
    record = run.wait(800)
    assert record.state == "succeeded", run.explain()
    assert record.attempts >= 2
    assert record.results["step"] == 1500
