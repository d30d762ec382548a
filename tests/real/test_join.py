"""Join, fencing and a cut network, tried with real pilots started by hand: no engine stands between."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.pilot.protocol import EXIT_FENCED, EXIT_GIVEN_BACK
from tests.contract.sites import END_S, until
from tests.real.cast import Cast, cast

__all__ = ["cast"]


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
    leader = cast.pilot(0, within=["ip", "netns", "exec", a], PODWRIGHT_LEADER="10.77.0.1")
    member = cast.pilot(1, within=["ip", "netns", "exec", b], PODWRIGHT_LEADER="10.77.0.1")
    cast.wait_step(3)
    subprocess.run(["ip", "-n", b, "link", "set", "eth0", "down"], check=True)
    until(lambda: {row["n"] for row in cast.events("rank_end")} == {0, 1}, "both sides end their ranks")
    assert len(cast.events("go")) == 1, "nobody goes on alone"
    subprocess.run(["ip", "-n", b, "link", "set", "eth0", "up"], check=True)
    assert (leader.wait(END_S), member.wait(END_S)) == (0, 0)
    assert [row["e"] for row in cast.events("go")] == [[0, 0], [1, 0]]
    assert cast.events("go")[-1]["retries_left"] == 1, "a lost node spends no retry"
    assert cast.record().state == "succeeded"
