"""What the batch script does by how its step went: run by real shells, with stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podwright.engines.slurm.script import ScriptJob, render_script

STAND_INS = {
    "srun": 'printf "%s\\n" "$PODWRIGHT_RUN $PODWRIGHT_LEADER" >>"$SITE/calls"; . "$SITE/step"',
    "scontrol": """
case "$1 $2" in
    "show hostnames") cat "$SITE/hosts" ;;
    "show job") cat "$SITE/job" ;;
    *) echo "scontrol $*" >>"$SITE/calls"; [ ! -e "$SITE/away" ] ;;
esac
""",
    "squeue": 'cat "$SITE/state"',
    "sleep": ":",
}
CLOSED = 'for n in 0 1; do mkdir -p "$RUN/record/n$n.r0"; touch "$RUN/record/n$n.r0/closed"; done'
EVENT = """
mkdir -p "$RUN/record/n0.r0"
echo '{"t":1,"q":9,"k":"end","state":"STATE"}' >>"$RUN/record/n0.r0/events.jsonl"
"""
GIVEN_BACK = EVENT.replace('"end","state":"STATE"', '"given_back","why":"x"')
WAIT = 'until [ -e "$1" ]; do /bin/sleep 0.02; done'


@dataclass(frozen=True)
class Case:
    """What the step does, what Slurm says, and what must come of it."""

    step: str
    code: int
    requeued: bool = False
    state: str = "RUNNING"
    job: str = "JobId=77 PreemptTime=None"
    there: tuple[str, ...] = ()
    made: tuple[str, ...] = field(default=())
    words: str = ""


BORN = 'mkdir -p "$RUN/record/n0.r0"'
LOST = tuple(f"lost.{number}" for number in range(10, 19))
CASES = {
    "succeeded": Case("exit 0", 0),
    "failed": Case("exit 77", 77),
    "no valid order": Case("exit 64", 64),
    "no Python": Case("exit 69", 69),
    "fenced": Case("exit 76", 76),
    "given back": Case("exit 75", 75, requeued=True),
    "a slice is over": Case(
        f'kill -USR2 $PPID; set -- "$RUN/yield.0"; {WAIT}; exit 75', 75, requeued=True, made=("yield.0",)
    ),
    "given back, and Slurm stopped a pilot as the leader left": Case(
        f"{GIVEN_BACK}{CLOSED}; exit 143", 75, requeued=True
    ),
    "a pilot had a fault": Case("exit 1", 1, requeued=True, made=("lost.0",)),
    "a pilot was lost, the others were stopped with it": Case("exit 143", 143, requeued=True, made=("lost.0",)),
    "a pilot was lost for the tenth time": Case(f"{BORN}; exit 137", 137, requeued=True, there=LOST, made=("lost.0",)),
    "a pilot was lost once too often": Case(
        f"{BORN}; exit 137",
        137,
        there=(*LOST, "lost.99"),
        made=("lost.0",),
        words="podwright: the step ended with 137, 11 times by now; the run is not started again\n",
    ),
    "no pilot began": Case("exit 1", 1, requeued=True, there=("lost.9",), made=("lost.0",)),
    "no pilot began, again and again": Case(
        "exit 1",
        1,
        there=("lost.8", "lost.9"),
        made=("lost.0",),
        words="podwright: the step ended with 1, 3 times by now; the run is not started again\n",
    ),
    "stopped by a user": Case(f"{CLOSED}; exit 143", 143),
    "stopped by a user, and a pilot killed": Case("exit 143", 143, there=("cancelled",), made=("lost.0",)),
    "preempted": Case(f"{CLOSED}; exit 143", 143, requeued=True, job="JobId=77 PreemptTime=2026-03-02T09:12:44"),
    "ended by Slurm": Case("kill -TERM $PPID; exit 137", 143),
    "a slice was over before the checkpoint was written": Case(
        'touch "$RUN/yield.0"; kill -TERM $PPID; exit 137',
        143,
        requeued=True,
        job="JobState=COMPLETING Reason=TimeLimit",
        made=("yield.0",),
    ),
    "cancelled in the last minute of a slice": Case(
        'touch "$RUN/yield.0"; kill -TERM $PPID; exit 137',
        143,
        job="JobState=COMPLETING Reason=None",
        made=("yield.0",),
    ),
    "ended by Slurm, which the script was not told": Case("exit 1", 1, state="COMPLETING", made=("lost.0",)),
    "succeeded, and a pilot was killed while closing": Case(f"{EVENT.replace('STATE', 'succeeded')}exit 137", 0),
    "failed, and a pilot was killed while closing": Case(f"{EVENT.replace('STATE', 'failed')}exit 137", 77),
    "terminated is no end": Case(f"{EVENT.replace('STATE', 'terminated')}exit 143", 143, True, made=("lost.0",)),
    "the controller is away": Case(
        'touch "$SITE/away"; exit 75', 75, True, words="podwright: the job could not be put back into the queue\n"
    ),
}


def site(folder: Path, run: Path, step: str) -> dict[str, str]:
    (folder / "bin").mkdir()
    for name, text in STAND_INS.items():
        path = folder / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / "step").write_text(step)
    (folder / "calls").touch()
    (folder / "job").touch()
    (folder / "hosts").write_text("n1\nn2\n")
    (run / "job").mkdir(parents=True)
    (run / "job" / "node.sh").touch()
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return {"PATH": path, "SITE": str(folder), "RUN": str(run), "SLURM_JOB_ID": "77", "SLURM_JOB_NODELIST": "n[1-2]"}


def run_script(shell: str, job: ScriptJob, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([shell, "-c", render_script(job)], env=environ, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_follows(case: Case, shell: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run = runs / "toy-2222"
    environ = site(tmp_path, run, case.step)
    (tmp_path / "state").write_text(case.state)
    (tmp_path / "job").write_text(case.job)
    for name in case.there:
        (run / name).touch()
    done = run_script(shell, ScriptJob("toy-2222", str(runs), 2, (), ("--nodes=2",)), environ)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0] == "toy-2222 n1"
    assert set(calls[1:]) == ({"scontrol requeue 77"} if case.requeued else set())
    assert {path.name for path in run.iterdir()} - {"job", "record", "owner"} == {*case.there, *case.made}
    assert (done.returncode, done.stderr) == (case.code, case.words)


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(("owner", "code", "started"), [(None, 0, 1), ("77", 0, 1), ("76", 76, 0)])
def test_a_run_has_one_job(owner: str | None, code: int, started: int, shell: str, tmp_path: Path) -> None:
    """The same job comes again after a requeue; another, of a submission that was repeated, starts nothing."""
    run = tmp_path / "runs" / "toy-2222"
    environ = site(tmp_path, run, "exit 0")
    if owner:
        (run / "owner").symlink_to(owner)
    done = run_script(shell, ScriptJob("toy-2222", str(run.parent), 2, (), ("--nodes=2",)), environ)
    assert done.returncode == code
    assert len((tmp_path / "calls").read_text().splitlines()) == started
    assert ("job 76 has this run, job 77 starts nothing" in done.stderr) == (started == 0)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_task_of_an_array_is_put_back_alone(shell: str, tmp_path: Path) -> None:
    """The last task of an array has the number of the whole: asked by that, Slurm would put all of it back."""
    runs = tmp_path / "runs"
    environ = site(tmp_path, runs / "toy-2222", "exit 75")
    (runs / "toy-2222-3").mkdir()
    (tmp_path / "state").write_text("RUNNING")
    environ |= {"SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": "3"}
    done = run_script(shell, ScriptJob("toy-2222", str(runs), 1, (), (), array=True), environ)
    assert done.returncode == 75
    assert (tmp_path / "calls").read_text() == "toy-2222-3 n1\nscontrol requeue 77_3\n"


def test_a_node_that_does_not_see_the_folder(tmp_path: Path) -> None:
    environ = site(tmp_path, tmp_path / "runs" / "toy-2222", "exit 0")
    done = run_script("dash", ScriptJob("toy-2222", "/no/such/folder", 1, (), ()), {**environ, "SLURMD_NODENAME": "n1"})
    assert done.returncode == 66
    assert done.stderr == (
        "podwright: n1 does not see /no/such/folder/toy-2222/job/node.sh\n"
        "hint: `folder:` of the scheduler must lie on a file system that all nodes share\n"
    )
    assert (tmp_path / "calls").read_text() == ""


STEP = 'while [ "$1" != /bin/sh ]; do shift; done; exec "$@"'


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_task_in_a_bundle_finds_its_node(shell: str, tmp_path: Path) -> None:
    """Slurm gives the variables of the batch host to every task there, so that each would take itself for node 0."""
    runs = tmp_path / "runs"
    environ = site(tmp_path, runs / "toy-2222", STEP)
    (tmp_path / "hosts").write_text(f"a\nb\n{socket.gethostname().partition('.')[0]}\n")
    (runs / "toy-2222" / "job" / "node.sh").write_text('echo "node $SLURM_NODEID"\n')
    job = ScriptJob("toy-2222", str(runs), 3, (), (), finds_node=True)
    assert run_script(shell, job, {**environ, "SLURM_NODEID": "0"}).stdout == "node 2\n"


def test_a_bundle_that_hides_its_node(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    environ = site(tmp_path, runs / "toy-2222", STEP)
    done = run_script("dash", ScriptJob("toy-2222", str(runs), 2, (), (), finds_node=True), environ)
    name = Path("/proc/sys/kernel/hostname").read_text().strip()
    assert done.returncode == 64
    assert done.stderr == (
        f"podwright: {name}, as the container calls its node, is none of n1 n2\n"
        "hint: a bundle for several nodes has no uts namespace of its own\n"
    )
