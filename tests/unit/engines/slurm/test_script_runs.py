"""What the batch script does by how its step went: run by real shells, with stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass, field, replace
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
    "mktemp": '[ -L "$SITE/full" ] && echo "$SITE/full" || exec /usr/bin/mktemp "$@"',
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
    "stopped by a user, and a pilot killed": Case(
        'touch "$RUN/cancelled"; exit 143', 143, made=("cancelled", "lost.0")
    ),
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
    "given back, and srun waits for a node that is gone": Case(
        f"{GIVEN_BACK}{CLOSED}; exec /bin/sleep 1000", 75, requeued=True
    ),
    "given back, and srun cannot be stopped": Case(
        f'trap "" TERM; {GIVEN_BACK}{CLOSED}; while :; do /bin/sleep 0.1; done', 75, requeued=True
    ),
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
    return subprocess.run([shell, "-c", render_script(job)], env=environ, capture_output=True, text=True, timeout=300)


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
    assert {path.name for path in run.iterdir()} - {"job", "record", "owner", "start.0", "over.0"} == {
        *case.there,
        *case.made,
    }
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
@pytest.mark.parametrize("code", [0, 77])
def test_what_a_full_folder_cannot_hold_is_left_with_slurm(code: int, shell: str, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "toy-2222"
    environ = site(tmp_path, run, f'ln -s /dev/full "$SITE/full"; exit {code}')
    done = run_script(shell, ScriptJob("toy-2222", str(run.parent), 2, (), ("--nodes=2",)), environ)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[1:] == ["scontrol update JobId=77 Comment=podwright: the run's folder is full"]
    assert (done.returncode, done.stderr) == (code, "")


JOB = ScriptJob("toy-2222", "RUNS", 2, (), ("--nodes=2",))
ENDED = {
    "succeeded": ("lease/ended", '{"state": "succeeded"}\n', 0),
    "failed": ("lease/ended", '{"state": "failed"}\n', 77),
    "cancelled": ("cancelled", "", 143),
    "succeeded, told by its events": ("record/n0.r3/events.jsonl", '{"q":9,"k":"end","state":"succeeded"}\n', 0),
    "failed, told by its events": ("record/n0.r3/events.jsonl", '{"q":9,"k":"end","state":"failed"}\n', 77),
}


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(("name", "text", "code"), ENDED.values(), ids=ENDED)
def test_a_run_that_has_ended_is_not_started_again(name: str, text: str, code: int, shell: str, tmp_path: Path) -> None:
    """Slurm starts the job once more, and says that it was never restarted: its controller lost its last minutes."""
    run = tmp_path / "runs" / "toy-2222"
    environ = site(tmp_path, run, "exit 0") | {"SLURM_RESTART_COUNT": "0"}
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_text(text)
    done = run_script(shell, replace(JOB, runs=str(run.parent)), environ)
    assert (done.returncode, done.stderr) == (code, "")
    assert (tmp_path / "calls").read_text() == ""


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
@pytest.mark.parametrize("name", ["lease/ended", "lease/0.0", "record/n0.r3/events.jsonl"])
def test_a_pipe_or_a_link_in_the_place_of_a_file_says_nothing(name: str, kind: str, shell: str, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "toy-2222"
    environ = site(tmp_path, run, "exit 0")
    (run / name).parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(run / name)
    else:
        (tmp_path / "forged").write_text('{"state": "failed", "copy": "0", "k":"end","state":"failed"}\n')
        (run / name).symlink_to(tmp_path / "forged")
    done = run_script(shell, replace(JOB, runs=str(run.parent)), environ)
    assert (done.returncode, (tmp_path / "calls").read_text()) == (0, "toy-2222 n1\n")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_mark_of_a_matrix_ends_every_point(shell: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    environ = site(tmp_path, runs / "toy-2222", "exit 0") | {"SLURM_ARRAY_JOB_ID": "77", "SLURM_ARRAY_TASK_ID": "3"}
    (runs / "toy-2222-3").mkdir()
    (runs / "toy-2222" / "cancelled").touch()
    done = run_script(shell, ScriptJob("toy-2222", str(runs), 1, (), (), array=True), environ)
    assert (done.returncode, (tmp_path / "calls").read_text()) == (143, "")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_script_counts_its_own_starts(shell: str, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "toy-2222"
    environ = site(tmp_path, run, 'echo "$PODWRIGHT_RESTART"; exit 75') | {"SLURM_RESTART_COUNT": "0"}
    (tmp_path / "state").write_text("RUNNING")
    starts = [run_script(shell, replace(JOB, runs=str(run.parent)), environ).stdout for _ in range(3)]
    assert starts == ["0\n", "1\n", "2\n"]
    assert {path.name for path in run.iterdir()} >= {"start.0", "start.1", "start.2", "over.2"}


OLDER_ENDS = {
    "closed": ("record/n0.r0/closed", "", ["toy-2222 n1"], 0),
    "its script saw it end": ("over.0", "", ["toy-2222 n1"], 0),
    "it succeeded": ("lease/ended", '{"state": "succeeded"}', [], 0),
    "it failed": ("lease/ended", '{"state": "failed"}', [], 77),
}


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(("name", "text", "calls", "code"), OLDER_ENDS.values(), ids=OLDER_ENDS)
def test_a_start_waits_for_an_older_one_that_is_still_at_work(
    name: str, text: str, calls: list[str], code: int, shell: str, tmp_path: Path
) -> None:
    """The older one ends while it is waited for: the stand-in of `sleep` is the time that goes by."""
    run = tmp_path / "runs" / "toy-2222"
    environ = site(tmp_path, run, "exit 0")
    (run / "start.0").mkdir()
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    claim = run / "lease" / "000000.000000"
    claim.parent.mkdir(exist_ok=True)
    claim.write_text('{"job": "77", "copy": "0", "facts": {}}\n')
    (tmp_path / "bin" / "sleep").write_text(
        f"#!/bin/sh\n[ ! -s \"$SITE/calls\" ] && printf '%s' '{text}' >'{run / name}'\n"
    )
    done = run_script(shell, replace(JOB, runs=str(run.parent)), environ)
    assert (done.returncode, (tmp_path / "calls").read_text().splitlines()) == (code, calls)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_an_older_start_whose_lease_is_stale_is_not_waited_for(shell: str, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "toy-2222"
    environ = site(tmp_path, run, "exit 0")
    claim = run / "lease" / "000000.000000"
    claim.parent.mkdir()
    claim.write_text('{"job": "77", "copy": "0", "facts": {}}\n')
    os.utime(claim, (claim.stat().st_mtime - 120,) * 2)
    done = run_script(shell, replace(JOB, runs=str(run.parent)), environ)
    assert (done.returncode, (tmp_path / "calls").read_text()) == (0, "toy-2222 n1\n")


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
