"""A node that follows: whom it believes, and what it does alone."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from podwright.pilot.data.node_data import NodeData
from podwright.pilot.life.roles import Following
from podwright.pilot.protocol import EXIT_FENCED, EXIT_GIVEN_BACK, EXIT_STOPPED
from podwright.pilot.ranks.memory_limit import RankMemory
from podwright.pilot.ranks.node_ranks import RankFailure
from podwright.pilot.system import links
from podwright.pilot.system.loop import Loop
from podwright.pilot.system.node_identity import NodeIdentity
from tests.unit.pilot.made import ORDER

ALONE = ("alone", {"why": "the leader on leader is gone; another is waited for"})


class FakeLink:
    """What the leader would send, and what it would hear."""

    def __init__(self) -> None:
        self.alive = True
        self.sent: list[dict[str, Any]] = []
        self.waiting: list[dict[str, Any]] = []
        self.sock = self

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    def receive(self) -> list[dict[str, Any]]:
        found, self.waiting = self.waiting, []
        return found

    def close(self) -> None:
        self.alive = False

    def kinds(self) -> list[str]:
        return [message["k"] for message in self.sent]


class QuietLoop(Loop):
    """Watches nothing and hears nothing of other threads: the test says what comes."""

    def watch(self, source: Any, callback: Any) -> None: ...

    def forget(self, source: Any) -> None: ...

    def call_soon(self, callback: Any) -> None: ...


class FakeNode:
    """The part of a node that its role sees."""

    def __init__(self) -> None:
        self.order = ORDER._replace(silence_s=30.0, join_timeout_s=600.0)
        self.identity = NodeIdentity(1, 0, "leader", "host1", "job")
        self.token, self.loop, self.epoch = b"", QuietLoop(), (0, 0)
        self.ranks, self.running, self.signalled, self.exit_code = self, True, None, None
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.taken: list[dict[str, Any]] = []
        self.again = 0

    def facts(self) -> dict[str, Any]:
        return {}

    def say(self, kind: str, **fields: Any) -> None:
        self.events.append((kind, fields))

    def take(self, message: dict[str, Any]) -> None:
        self.taken.append(message)

    def end_ranks(self) -> None:
        self.running = False

    def say_again(self) -> None:
        self.again += 1

    def report_ranks(self, role: Any) -> None: ...

    def pulse(self) -> dict[str, Any]:
        return {"k": "beat"}


class Scene:
    def __init__(self) -> None:
        self.t = 1000.0
        self.node = FakeNode()
        self.role: Following

    def monotonic(self) -> float:
        return self.t

    def link(self, instance: str) -> FakeLink:
        made = FakeLink()
        self.role._linked(made, instance, not self.node.ranks.running)  # type: ignore[arg-type]
        return made

    def after(self, seconds: float) -> None:
        self.t += seconds
        self.role.tick()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene()

    def nobody(*_: Any) -> Any:
        raise links.Broken("nobody there")

    monkeypatch.setattr(links, "connect", nobody)
    made.role = Following(made.node, made.monotonic)  # type: ignore[arg-type]
    return made


def test_the_leaders_words_reach_the_node(scene: Scene) -> None:
    link = scene.link("first")
    link.waiting = [{"k": "go"}, {"k": "beat"}]
    scene.role._hear()
    assert scene.node.taken == [{"k": "go"}, {"k": "beat"}]
    scene.role.beat()
    assert link.sent == [{"k": "beat", "e": (0, 0)}]


def test_a_broken_connection_to_the_same_leader_keeps_the_ranks_and_tells_again(scene: Scene) -> None:
    link = scene.link("first")
    link.alive = False
    scene.role._hear()
    scene.after(10.0)
    assert scene.node.running
    again = scene.link("first")
    assert (scene.node.running, scene.node.again, again.sent) == (True, 1, [])


def test_a_link_that_was_made_with_words_no_longer_true_is_not_used(scene: Scene) -> None:
    """The leader would take a node whose ranks were ended meanwhile for one that is still at work."""
    scene.node.ranks.running = False
    made = FakeLink()
    scene.role._linked(made, "leader", said_idle=False)  # type: ignore[arg-type]
    assert not made.alive
    assert scene.role._link is None


def test_another_leader_has_no_use_for_old_ranks(scene: Scene) -> None:
    scene.link("first")
    second = scene.link("second")
    assert not scene.node.running
    assert second.kinds() == ["stopped"]


def test_a_node_alone_for_the_time_of_silence_ends_its_ranks(scene: Scene) -> None:
    link = scene.link("first")
    link.alive = False
    scene.role._hear()
    scene.after(30.0)
    assert scene.node.running
    scene.after(1.0)
    assert (scene.node.running, scene.node.exit_code) == (False, None)


def test_a_leader_that_is_silent_is_left(scene: Scene) -> None:
    link = scene.link("first")
    scene.after(31.0)
    assert not link.alive
    scene.after(0.5)
    assert not scene.node.running


def test_without_a_leader_the_node_is_given_back_in_the_end(scene: Scene) -> None:
    scene.after(600.0)
    assert scene.node.exit_code is None
    scene.after(1.0)
    assert scene.node.exit_code == EXIT_GIVEN_BACK
    assert scene.node.events == [ALONE, ("given_back", {"why": "no leader at leader for 600 s"})]


def test_a_signal_is_told_to_the_leader_once(scene: Scene) -> None:
    link = scene.link("first")
    scene.node.signalled = "SIGTERM"
    scene.after(0.5)
    scene.after(0.5)
    assert [(message["k"], message.get("name")) for message in link.sent] == [("signal", "SIGTERM")]
    assert scene.node.exit_code is None


def test_a_signal_without_a_leader_ends_the_node(scene: Scene) -> None:
    scene.node.signalled = "SIGTERM"
    scene.after(0.5)
    assert (scene.node.running, scene.node.exit_code) == (False, EXIT_STOPPED)


def test_a_node_that_is_refused_is_fenced(scene: Scene) -> None:
    link = scene.link("first")
    link.waiting = [{"k": "refused", "why": "node 1 was replaced by a later copy"}]
    scene.role._hear()
    assert (scene.node.running, scene.node.exit_code) == (False, EXIT_FENCED)
    assert scene.node.events == [("fenced", {"by": None, "job": "node 1 was replaced by a later copy"})]


def test_a_failure_whose_news_was_lost_is_told_again() -> None:
    """The node's side: what it told into a dead connection it tells anew."""
    from podwright.pilot.life.node import Node

    node = Node.__new__(Node)
    node._data = NodeData(ORDER, None, None, None)  # type: ignore[arg-type]
    node._news, node._stop_at, node._ready_sent = {"changed": True}, None, 0
    node.ranks = FakeNode()  # type: ignore[assignment]
    node.ranks.failure, node.ranks.reported, node.ranks.done = (
        RankFailure(1, 7, None, 2.0, "exited with 7", []),
        2,
        False,
    )
    node._memory = RankMemory(ORDER, 1, node.ranks, node.ranks.say)
    told: list[list[str]] = []
    for _ in range(2):
        role = FakeLink()
        role.tell = role.send  # type: ignore[attr-defined]
        for _ in range(2):
            node.report_ranks(role)  # type: ignore[arg-type]
        told.append(role.kinds())
        node.say_again()
    assert told == [["ready", "failed"], ["ready", "failed"]]


def test_without_a_thread_to_be_had_it_tries_again_later(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def none_left(**_: Any) -> Any:
        tries.append(scene.t)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading, "Thread", none_left)
    scene.role._missed()
    scene.after(1.0)
    scene.after(1.0)
    assert tries == [1001.0, 1002.0]
    assert scene.node.exit_code is None


def test_a_leader_that_was_here_and_is_gone_is_not_waited_for_as_one_that_never_came(scene: Scene) -> None:
    scene.node.order = scene.node.order._replace(rejoin_s=60.0)
    link = scene.link("first")
    link.alive = False
    scene.role._hear()
    scene.after(90.0)
    assert scene.node.exit_code is None
    scene.after(1.0)
    assert scene.node.exit_code == EXIT_GIVEN_BACK
    assert scene.node.events == [ALONE, ("given_back", {"why": "no leader at leader for 90 s"})]
