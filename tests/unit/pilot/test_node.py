"""Whole runs of one node: what its ranks do is told right, and a broken one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.payload import pilot_zip
from podwright.launch.failures import last_stack
from podwright.pilot.life.lease import Leases
from podwright.pilot.protocol import EXIT_FAILED, EXIT_FENCED, EXIT_STOPPED, rows_of
from tests.unit.pilot.made import ORDER
from tests.unit.runs.made import parsed


class Started:
    """The pilot of a run of one node, in a folder as an engine leaves it."""

    def __init__(self, folder: Path, environ: dict[str, str], **changes: Any) -> None:
        self.folder, job = folder, folder / "job"
        job.mkdir()
        (folder / "token").write_text("token\n")
        order = ORDER._replace(nodes=1, ranks_per_node=1, **changes)
        (job / "order.json").write_text(order.text())
        (job / "pilot.pyz").write_bytes(pilot_zip())
        command = [sys.executable, "-I", "-S", str(job / "pilot.pyz"), "node", str(job / "order.json")]
        own = {"PATH": os.environ["PATH"], "PODWRIGHT_JOB": "job", **environ}
        self._process = subprocess.Popen(command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def events(self, kind: str) -> list[dict[str, Any]]:
        rows = list(rows_of(str(self.folder / "record" / "n0.r0" / "events.jsonl")))
        return [row for row in rows if row["k"] == kind]

    def seen(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """The events of a kind, once there are so many."""
        deadline = time.monotonic() + 60
        while len(found := self.events(kind)) < count:
            assert self._process.poll() is None, f"it ended before it said {kind}"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return found

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        words, _ = self._process.communicate(timeout=300)
        return self._process.returncode, words

    def text(self) -> str:
        return "".join(path.read_text() for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".pyz")


@pytest.fixture
def start(tmp_path: Path) -> Any:
    made: list[Started] = []

    def make(environ: dict[str, str] | None = None, **changes: Any) -> Started:
        made.append(Started(tmp_path, environ or {}, **changes))
        return made[-1]

    yield make
    for one in made:
        if one._process.poll() is None:
            one._process.kill()
        one.end()


def test_a_rank_that_fails_is_told_with_its_last_lines(start: Any) -> None:
    run = start(command=["sh", "-c", "echo before; echo Boom >&2; exit 7"])
    assert run.end() == (EXIT_FAILED, "")
    (failed,) = run.events("failed")
    facts = (failed["rank"], failed["code"], failed["why"], failed["stopped"])
    assert facts == (0, 7, "exited with 7", [])
    assert sorted(failed["tail"]) == ["Boom", "before"]
    (end,) = run.events("end")
    assert (end["state"], end["exit_code"]) == ("failed", 7)


def test_a_retry_starts_from_the_checkpoint(start: Any) -> None:
    script = 'cat "$PODWRIGHT_CHECKPOINT/a" 2>/dev/null && exit 0; echo $PODWRIGHT_ATTEMPT > {checkpoint}/a; exit 1'
    run = start(command=["sh", "-c", script], retries=1)
    assert run.end() == (0, "")
    assert [row["e"] for row in run.events("go")] == [[0, 0], [0, 1]]
    assert [row["attempt"] for row in run.events("go")] == [1, 2]
    assert (run.folder / "record" / "n0.r0" / "rank0.log").read_text() == "1\n"


def test_a_command_that_is_not_there(start: Any) -> None:
    run = start(command=["no-such-program"])
    assert run.end()[0] == EXIT_FAILED
    assert run.events("failed")[0]["tail"] == ["podwright: no-such-program: command not found"]


def test_a_setup_that_fails_is_told_without_secrets_and_tried_once(start: Any) -> None:
    secret = "s3cr3t-of-the-user"
    run = start({"KEY": secret}, command=["true"], setup=["echo key is $KEY", "false"], secrets=["KEY"], retries=3)
    assert run.end() == (EXIT_FAILED, "")
    (failed,) = run.events("failed")
    assert (failed["why"], failed["tail"]) == ("setup exited with 1", ["key is ***"])
    assert len(run.events("go")) == 1
    assert secret not in run.text()


def test_of_a_setup_that_says_much_the_last_lines_are_told(start: Any) -> None:
    secret = "s3cr3t-of-the-user"
    lines = [f"for i in $(seq 5000); do echo $i {'x' * 100} $KEY; done", "false"]
    run = start({"KEY": secret}, command=["true"], setup=lines, secrets=["KEY"])
    assert run.end() == (EXIT_FAILED, "")
    (failed,) = run.events("failed")
    assert failed["tail"] == [f"{i} {'x' * 100} ***" for i in range(4971, 5001)]


def test_what_setup_exports_reaches_the_ranks(start: Any) -> None:
    run = start(command=["sh", "-c", "echo $SHAPE"], setup=["SHAPE='round and red'", "export SHAPE"])
    assert run.end() == (0, "")
    assert (run.folder / "record" / "n0.r0" / "rank0.log").read_text() == "round and red\n"


def test_a_launcher_that_starts_nothing_is_a_failure(start: Any, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "torchrun"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho nothing to do\n")
    fake.chmod(0o755)
    run = start({"PATH": f"{fake.parent}:{os.environ['PATH']}"}, launcher="torchrun", command=["train"])
    assert run.end() == (EXIT_FAILED, "")
    (failed,) = run.events("failed")
    assert (failed["rank"], failed["why"]) == (None, "the launcher ended when 0 of 1 ranks had started")
    assert failed["tail"] == ["nothing to do"]


def test_the_best_value_of_a_burst_reaches_the_goal(start: Any) -> None:
    lines = "".join(f'{{"podwright": {{"iou": {value}}}}}\\n' for value in (0.2, 0.9, 0.3))
    run = start(command=["printf", lines], goal={"metric": "iou", "at_least": 0.65})
    assert run.end() == (0, "")
    assert [row["value"] for row in run.events("goal")] == [0.9]


def test_a_signal_gives_the_ranks_their_grace(start: Any) -> None:
    script = 'trap "echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
    run = start(command=["sh", "-c", script], grace_s=30.0)
    run.seen("rank")
    log = run.folder / "record" / "n0.r0" / "rank0.log"
    while not log.exists() or "ready" not in log.read_text():
        time.sleep(0.02)
    run.send(signal.SIGTERM)
    assert run.end() == (EXIT_STOPPED, "")
    assert log.read_text() == "ready\nsaved\n"
    (end,) = run.events("end")
    assert (end["state"], end["reason"]) == ("terminated", "stopped by SIGTERM")


def test_a_run_that_was_cancelled_before_its_pilot_could_hear_it_ends(start: Any) -> None:
    run = start(command=["sh", "-c", 'trap "exit 0" TERM; while :; do sleep 0.05; done'], grace_s=30.0)
    run.seen("rank")
    (run.folder / "cancelled").touch()
    assert run.end() == (EXIT_STOPPED, "")
    (end,) = run.events("end")
    assert (end["state"], end["reason"]) == ("terminated", "cancelled")


def test_a_rank_that_a_cancelling_reached_before_its_pilot_did_not_fail(start: Any) -> None:
    run = start(command=["sleep", "1000"], grace_s=30.0)
    (rank,) = run.seen("rank")
    (run.folder / "cancelled").touch()
    os.kill(rank["pid"], signal.SIGTERM)
    assert run.end() == (EXIT_STOPPED, "")
    (end,) = run.events("end")
    assert end["state"] == "terminated"


def test_ranks_that_ignore_the_signal_are_killed_with_all_beneath_them(start: Any) -> None:
    script = 'trap "" TERM; (setsid sleep 1000 & echo $!); while :; do sleep 0.05; done'
    run = start(command=["sh", "-c", script], grace_s=0.3)
    log = run.folder / "record" / "n0.r0" / "rank0.log"
    while not log.exists() or not log.read_text().endswith("\n"):
        time.sleep(0.02)
    run.send(signal.SIGTERM)
    assert run.end() == (EXIT_STOPPED, "")
    with pytest.raises(ProcessLookupError):
        os.kill(int(log.read_text().split()[0]), 0)


def test_a_signal_during_setup_ends_it(start: Any) -> None:
    run = start(command=["true"], setup=["touch ../../../began", "sleep 1000"])
    while not (run.folder / "began").exists():
        time.sleep(0.02)
    run.send(signal.SIGTERM)
    assert run.end() == (EXIT_STOPPED, "")
    assert [row["state"] for row in run.events("end")] == ["terminated"]


def test_a_leader_that_finds_a_newer_claim_kills_its_ranks(start: Any) -> None:
    """Even of its own job: the engine replaced it and it did not know."""
    run = start(command=["sleep", "1000"], beat_s=0.1)
    (rank,) = run.seen("rank")
    assert Leases(str(run.folder / "lease"), "job").claim((1, 0), {})
    assert run.end() == (EXIT_FENCED, "")
    assert [row["by"] for row in run.events("fenced")] == [[1, 0]]
    with pytest.raises(ProcessLookupError):
        os.kill(rank["pid"], 0)


HANGS = """
import os, signal, threading, time
def other():
    time.sleep(1000)
def waits_for_its_peers():
    {how}
threading.Thread(target=other, daemon=True).start()
waits_for_its_peers()
"""


@pytest.mark.parametrize(
    ("how", "within"),
    [
        ("time.sleep(1000)", ["sh", "-c", '"$@"; exit 3', "sh"]),
        # It goes on for a moment until the other thread has written down where it is.
        ("os.kill(os.getpid(), signal.SIGSTOP); time.sleep(1000)", []),
    ],
)
def test_a_rank_that_hangs_says_where_it_was(start: Any, how: str, within: list[str]) -> None:
    command = [*within, sys.executable, "-c", HANGS.format(how=how)]
    run = start(command=command, hang_after_s=8.0, beat_s=0.1)
    assert run.end() == (EXIT_FAILED, "")
    (stack,) = run.events("stack")
    assert stack["rank"] == 0
    assert last_stack(parsed(stack))[:2] == ["rank 0 was at", 'File "<string>", line 6 in waits_for_its_peers']
    assert any("in other" in line for line in stack["lines"])


def test_a_hang_is_seen_and_the_attempt_is_ended(start: Any) -> None:
    run = start(command=["sleep", "1000"], hang_after_s=5.0, beat_s=0.1)
    assert run.end() == (EXIT_FAILED, "")
    (hang,) = run.events("hang")
    assert (hang["rank"], hang["node"]) == (0, 0)
    assert hang["why"].startswith("it has printed nothing for ")
