"""Runs on a real Slurm end once, and promptly: whatever starts the job again, and whatever a node does meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from podwright import launch
from podwright.engines.base import Request
from podwright.engines.slurm import SlurmEngine
from podwright.launch import Run
from podwright.spec import Pod, SlurmScheduler
from podwright.usage import gather
from tests.contract.campaign import LedgerRow, check_ended_once, ledger_rows
from tests.contract.sites import END_S, SlurmSite, mend, until

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]
REJOIN_S, SILENCE_S = 3.0, 5.0


class ImpatientEngine(SlurmEngine):
    """An engine whose runs miss a node soon."""

    def plan(self, request: Request, facts: Any) -> Any:
        job = super().plan(request, facts)
        return replace(job, parts=tuple(replace(part, order=_impatient(part.order)) for part in job.parts))


def _impatient(order: Any) -> Any:
    return order._replace(rejoin_s=REJOIN_S, silence_s=SILENCE_S)


def impatient(pod: Pod, name: str | None) -> SlurmEngine:
    scheduler = pod.scheduler(name)
    assert isinstance(scheduler, SlurmScheduler)
    return ImpatientEngine(pod, scheduler)


@pytest.fixture
def healthy(slurm: SlurmSite) -> SlurmSite:
    mend(slurm.lab)
    return slurm


def job_state(site: SlurmSite, job: str) -> str:
    return site.slurm("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T").strip()


def ledger(site: SlurmSite, run: Run) -> list[LedgerRow]:
    return ledger_rows(site.lab.shared / "runs" / run.id / "ledger")


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
    check_ended_once(ledger(healthy, run), 1)


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
    assert whys[0] == f"{victim} was gone and did not come back within {SILENCE_S + REJOIN_S:g} s"
    check_ended_once(ledger(healthy, run), 2)


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


def test_a_job_that_the_controller_forgot_after_it_began_is_given_again(healthy: SlurmSite) -> None:
    """It died before it had saved that it gave nodes away; the nodes end what nobody knows."""
    run = healthy.start("--steps 20 --hold-at 6 --ledger", nodes=2, grace="2s")
    healthy.wait_step(run, 6, rank=1)
    healthy.lab.kill_controller()
    for path in (healthy.lab.folder / "state").glob("job_state*"):
        path.unlink()
    healthy.lab.restart_controller()
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), (record.reason, run.explain())
    check_ended_once(ledger(healthy, run), 2)


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_script_that_was_written_for_sbatch_calls_srun(healthy: SlurmSite, nodes: int) -> None:
    """Its steps run beside ours, which holds all of the job."""
    script = f"srun --nodes={nodes} --ntasks-per-node=1 sh -c 'echo step on $SLURMD_NODENAME'"
    command = ["sh", "-c", f'[ "${{RANK:-0}}" != 0 ] || {script}']
    run = healthy.start(command=json.dumps(command), code=None, launcher=None, nodes=nodes)
    assert run.wait(END_S).state == "succeeded", run.explain()
    steps = [line.text for line in run.logs() if line.text.startswith("step on ")]
    assert sorted(steps) == sorted(f"step on {host}" for host in run.record().hosts)


def test_ranks_have_the_numbers_that_slurm_gives_its_tasks(healthy: SlurmSite) -> None:
    """Lightning, and others, read them where they find a job of Slurm."""
    names = ("PROCID", "LOCALID", "NODEID", "NTASKS", "NTASKS_PER_NODE")
    shown = " ".join(f"$SLURM_{name}" for name in names)
    run = healthy.start(command=json.dumps(["sh", "-c", f"echo numbers {shown}"]), code=None, nodes=2, ranks_per_node=2)
    assert run.wait(END_S).state == "succeeded", run.explain()
    numbers = [line.text for line in run.logs() if line.text.startswith("numbers ")]
    assert sorted(numbers) == [f"numbers {rank} {rank % 2} {rank // 2} 4 2" for rank in range(4)]
