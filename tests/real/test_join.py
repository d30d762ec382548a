"""Join, fencing and a cut network, tried with real pilots started by hand: no engine stands between."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.payload import pilot_zip
from podwright.pilot.protocol import EXIT_FENCED, EXIT_GIVEN_BACK, Order, record_folders, rows_of
from podwright.runs.events import parse_event
from podwright.runs.record import Asked, Fold
from tests.contract.sites import END_S, PROGRAMS, until


class Cast:
    """One run's folder, and its pilots as processes of this test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = f"join-{secrets.token_hex(4)}"
        (folder / "job").mkdir(parents=True)
        (folder / "job" / "pilot.pyz").write_bytes(pilot_zip())
        (folder / "token").write_text("a token of this test\n")
        self.processes: list[subprocess.Popen[bytes]] = []

    def order(self, arguments: str, **fields: Any) -> None:
        command = [sys.executable, str(PROGRAMS / "count.py"), *arguments.split()]
        order = Order(
            run=self.run,
            engine="local",
            nodes=2,
            ranks_per_node=1,
            launcher="ranks",
            command=command,
            folder="..",
            scratch="../scratch",
            shared=True,
            bind="127.0.0.1",
            checkpoint="checkpoints",
            beat_s=0.2,
            silence_s=3.0,
            retries=1,
        )
        (self.folder / "job" / "order.json").write_text(replace(order, **fields).text())

    def pilot(self, node: int, restart: int = 0, job: str = "a", **extra: str) -> subprocess.Popen[bytes]:
        where = extra.pop("namespace", "")
        prefix = ["ip", "netns", "exec", where] if where else []
        environ = {
            **os.environ,
            "PODWRIGHT_NODE": str(node),
            "PODWRIGHT_RESTART": str(restart),
            "PODWRIGHT_JOB": job,
            "PODWRIGHT_HOST": f"{job}{node}",
            "PODWRIGHT_TOKEN_FILE": str(self.folder / "token"),
            **extra,
        }
        job_folder = self.folder / "job"
        command = [
            *prefix,
            sys.executable,
            "-I",
            "-S",
            str(job_folder / "pilot.pyz"),
            "node",
            str(job_folder / "order.json"),
        ]
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def events(self, kind: str) -> list[dict[str, Any]]:
        rows = [row for *_, path in record_folders(str(self.folder / "record")) for row in self._rows(path)]
        return [row for row in sorted(rows, key=lambda row: row["t"]) if row["k"] == kind]

    def _rows(self, path: str) -> list[dict[str, Any]]:
        return list(rows_of(f"{path}/events.jsonl"))

    def wait_step(self, step: int, attempt: int = 1) -> None:
        def told() -> bool:
            return len(self.events("go")) >= attempt and any(
                row["values"].get("step", 0) >= step and row["e"] == self.events("go")[attempt - 1]["e"]
                for row in self.events("result")
            )

        until(told, f"step {step} in attempt {attempt}")

    def record(self) -> Any:
        fold = Fold(Asked(self.run, "join", "local", "local", 0.0, 2, 1, {}), str(self.folder))
        for *_, path in record_folders(str(self.folder / "record")):
            events = [parse_event(row) for row in self._rows(path)]
            fold.take(event for event in events if event is not None)
        return fold.record(0.0)

    def close(self) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


@pytest.fixture
def cast(tmp_path: Path) -> Iterator[Cast]:
    cast = Cast(tmp_path)
    yield cast
    cast.close()


def test_a_node_that_never_comes(cast: Cast) -> None:
    cast.order("--steps 3", join_timeout_s=1.0)
    leader = cast.pilot(0)
    assert leader.wait(END_S) == EXIT_GIVEN_BACK
    assert cast.events("given_back")[0]["why"] == "node 1 did not join within 1 s"
    assert cast.events("go") == []


def test_a_member_without_a_leader_gives_itself_back(cast: Cast) -> None:
    cast.order("--steps 3", join_timeout_s=1.0)
    assert cast.pilot(1).wait(END_S) == EXIT_GIVEN_BACK
    assert "no leader at 127.0.0.1" in cast.events("given_back")[0]["why"]


def test_a_node_that_comes_twice_is_refused_and_the_run_goes_on(cast: Cast) -> None:
    cast.order("--steps 40 --pause 0.15")
    leader, member = cast.pilot(0), cast.pilot(1)
    cast.wait_step(3)
    twin = cast.pilot(1, job="twin")
    assert twin.wait(END_S) == EXIT_FENCED
    assert (leader.wait(END_S), member.wait(END_S)) == (0, 0)
    assert len(cast.events("go")) == 1


def test_a_stranger_without_the_token_is_not_let_in(cast: Cast, tmp_path: Path) -> None:
    cast.order("--steps 10", join_timeout_s=20.0)
    wrong = tmp_path / "wrong"
    wrong.write_text("another token\n")
    leader = cast.pilot(0)
    until(lambda: cast.events("joined"), "the leader listens")
    stranger = cast.pilot(1, job="stranger", PODWRIGHT_TOKEN_FILE=str(wrong))
    until(lambda: any(row["host"] == "stranger1" for row in cast.events("pilot")), "the stranger tries")
    assert not any(row["node"] == 1 for row in cast.events("joined"))
    stranger.kill()
    shutil.rmtree(cast.folder / "record" / "n1.r0")
    member = cast.pilot(1)
    assert (leader.wait(END_S), member.wait(END_S)) == (0, 0)


def test_a_late_copy_of_an_old_attempt_changes_nothing(cast: Cast) -> None:
    cast.order("--steps 60 --pause 0.1")
    leader, old = cast.pilot(0), cast.pilot(1)
    cast.wait_step(3)
    old.kill()
    old.wait()
    new = cast.pilot(1, restart=1)
    cast.wait_step(5, attempt=2)
    late = cast.pilot(1, restart=0, job="late")
    assert late.wait(END_S) == EXIT_FENCED
    assert (leader.wait(END_S), new.wait(END_S)) == (0, 0)
    record = cast.record()
    assert (record.state, record.attempts, record.hosts) == ("succeeded", 2, ("a0", "a1"))


def test_a_run_submitted_twice_runs_once(cast: Cast) -> None:
    cast.order("--steps 40 --pause 0.15", nodes=1)
    first = cast.pilot(0)
    cast.wait_step(3)
    second = cast.pilot(0, job="b", restart=0)
    assert second.wait(END_S) == EXIT_FENCED
    assert first.wait(END_S) == 0
    assert len(cast.events("go")) == 1


def test_a_requeued_job_fences_its_old_copy(cast: Cast) -> None:
    """A node cut off from the scheduler runs on while its job is started elsewhere: the newer claim ends it."""
    cast.order("--steps 60 --pause 0.1", nodes=1)
    old = cast.pilot(0, job="old")
    cast.wait_step(3)
    new = cast.pilot(0, restart=1, job="new")
    assert old.wait(END_S) == EXIT_FENCED
    assert new.wait(END_S) == 0
    assert cast.events("fenced")[0]["job"] == "new"
    record = cast.record()
    assert (record.state, record.attempts, record.hosts) == ("succeeded", 2, ("new0",))
    told = [row["values"]["step"] for row in cast.events("result") if row["e"] == [1, 0]]
    assert told[0] > 1, "it goes on from the checkpoint"


def test_a_leader_that_is_stopped_is_left_and_met_again(cast: Cast) -> None:
    """Silence, not a closed connection: the member ends its ranks, and the same leader starts a new epoch."""
    import signal

    cast.order("--steps 60 --pause 0.1", silence_s=1.0)
    leader, member = cast.pilot(0), cast.pilot(1)
    cast.wait_step(3)
    leader.send_signal(signal.SIGSTOP)
    until(lambda: any(row["n"] == 1 for row in cast.events("rank_end")), "the member ends its ranks")
    leader.send_signal(signal.SIGCONT)
    assert (leader.wait(END_S), member.wait(END_S)) == (0, 0)
    assert [row["e"] for row in cast.events("go")][:2] == [[0, 0], [1, 0]]
    assert cast.record().state == "succeeded"


@pytest.fixture
def wire() -> Iterator[tuple[str, str]]:
    """Two hosts: network namespaces joined by a pair of virtual cards."""
    tag = secrets.token_hex(3)
    a, b = f"pw{tag}a", f"pw{tag}b"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    ip("netns", "add", a)
    ip("netns", "add", b)
    try:
        ip("-n", a, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", b)
        for name, address in ((a, "10.77.0.1/24"), (b, "10.77.0.2/24")):
            ip("-n", name, "addr", "add", address, "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield a, b
    finally:
        ip("netns", "del", a)
        ip("netns", "del", b)


@pytest.mark.netns
def test_a_cut_network_ends_both_sides_and_healing_goes_on(cast: Cast, wire: tuple[str, str]) -> None:
    a, b = wire
    cast.order("--steps 120 --pause 0.1", bind="10.77.0.1", silence_s=2.0)
    leader = cast.pilot(0, namespace=a, PODWRIGHT_LEADER="10.77.0.1")
    member = cast.pilot(1, namespace=b, PODWRIGHT_LEADER="10.77.0.1")
    cast.wait_step(3)
    subprocess.run(["ip", "-n", b, "link", "set", "eth0", "down"], check=True)
    until(lambda: {row["n"] for row in cast.events("rank_end")} == {0, 1}, "both sides end their ranks")
    assert len(cast.events("go")) == 1, "nobody goes on alone"
    subprocess.run(["ip", "-n", b, "link", "set", "eth0", "up"], check=True)
    assert (leader.wait(END_S), member.wait(END_S)) == (0, 0)
    assert [row["e"] for row in cast.events("go")] == [[0, 0], [1, 0]]
    assert cast.events("go")[-1]["retries_left"] == 1, "a lost node spends no retry"
    assert cast.record().state == "succeeded"
