"""Links between pilots: who may join, and what a stranger can do."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from podwright.pilot.protocol import join_ports
from podwright.pilot.system import links
from podwright.pilot.system.links import Broken, Greeting, Link, connect
from podwright.pilot.system.listener import HELLO_S, Listener
from podwright.pilot.system.loop import Loop
from tests.contract.sites import until

TOKEN = b"token of the run"
RUN = "toy-2222"


class DoorLoop(Loop):
    """One whose time the test may move on."""

    ahead_s = 0.0

    def now(self) -> float:
        return super().now() + self.ahead_s


class Leader:
    """A leader's port that greets whoever comes, in its own thread."""

    def __init__(self, token: bytes) -> None:
        self._token = token
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self.links: list[Link] = []
        self.facts: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.loop = DoorLoop()
        self._door = Listener(self.loop, "join", listener, lambda: 1, self._greet)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            self.loop.turn(0.02)

    def _greet(self, sock: socket.socket) -> Callable[[bytes], None]:
        greeting = Greeting(self._token, "leader-1")
        links.say(sock, greeting.challenge)
        return lambda line: self._enter(sock, greeting, line)

    def _enter(self, sock: socket.socket, greeting: Greeting, line: bytes) -> None:
        try:
            welcome, key, facts = greeting.check(line)
        except Exception as error:
            self.refused.append(f"{type(error).__name__}: {error}")
            raise
        links.say(sock, welcome)
        self.facts.append(facts)
        self.links.append(Link(sock, key, "leader"))

    def wait(self) -> None:
        """Waits until somebody was let in or refused."""
        until(lambda: self.links or self.refused, "an answer")

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._door.close()
        for link in self.links:
            link.close()


@pytest.fixture
def door(monkeypatch: pytest.MonkeyPatch) -> Iterator[Leader]:
    leader = Leader(TOKEN)
    monkeypatch.setattr(links, "join_ports", lambda run: [leader.port])
    yield leader
    leader.close()


@pytest.fixture
def pair(door: Leader) -> Iterator[tuple[Link, Link]]:
    """(leader's end, member's end) of a link."""
    member, _ = connect("127.0.0.1", RUN, TOKEN, {"node": 1}, 0)
    door.wait()
    yield door.links[0], member
    member.close()


def received(link: Link, enough: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """What comes until it is enough or the link is dead."""
    found: list[dict[str, Any]] = []
    link.sock.settimeout(300.0)
    while link.alive and not enough(found):
        found += link.receive()
    return found


def test_the_right_token_joins_and_both_sides_know_each_other(door: Leader) -> None:
    link, instance = connect("127.0.0.1", RUN, TOKEN, {"node": 1, "host": "ä"}, 0)
    door.wait()
    assert instance == "leader-1"
    assert door.facts == [{"node": 1, "host": "ä"}]
    link.send({"k": "beat", "text": "a\nb"})
    link.send({"k": "done"})
    assert received(door.links[0], lambda found: len(found) == 2) == [{"k": "beat", "text": "a\nb"}, {"k": "done"}]
    door.links[0].send({"k": "go"})
    assert received(link, bool) == [{"k": "go"}]
    link.close()


def test_a_wrong_token_is_refused_on_both_sides(door: Leader) -> None:
    with pytest.raises(Broken, match=r"no handshake|reset"):
        connect("127.0.0.1", RUN, b"another token", {"node": 1}, 0)
    door.wait()
    assert door.refused == ["Broken: its token is not this run's"]


def test_a_leader_without_the_token_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(links, "join_ports", lambda run: [server.getsockname()[1]])

    def pretend() -> None:
        sock, _ = server.accept()
        sock.sendall(b'{"nonce": "00", "instance": "false"}\n')
        sock.recv(4096)
        sock.sendall(b'{"mac": "00"}\n')
        sock.recv(1)
        sock.close()

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(Broken, match="its token is not this run's"):
        connect("127.0.0.1", RUN, TOKEN, {"node": 1}, 0)
    thread.join()
    server.close()


def test_nobody_there_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        monkeypatch.setattr(links, "join_ports", lambda run: [port])
        with pytest.raises(Broken, match="refused"):
            connect("127.0.0.1", RUN, TOKEN, {}, 0)


def test_a_recorded_join_opens_no_second_door(door: Leader) -> None:
    """Everything a listener heard of one handshake is said again to the next."""
    with socket.create_connection(("127.0.0.1", door.port)) as sock:
        nonce = json.loads(sock.makefile().readline())["nonce"]
        body = json.dumps({"node": 1})
        sign = links.mac(TOKEN, "join", nonce, "mine", "leader-1", body)
        hello = json.dumps({"join": body, "nonce": "mine", "mac": sign}).encode() + b"\n"
        sock.sendall(hello)
        door.wait()
        assert door.facts == [{"node": 1}]
    with socket.create_connection(("127.0.0.1", door.port)) as sock:
        sock.sendall(hello)
        assert is_shown_out(sock)
    assert door.refused == ["Broken: its token is not this run's"]


def heard(link: Link, data: bytes) -> list[dict[str, Any]]:
    """What a link makes of these bytes."""
    ours, theirs = socket.socketpair()
    other = Link(ours, link._key, link._ours)
    theirs.sendall(data)
    found = other.receive()
    link.alive = other.alive
    ours.close()
    theirs.close()
    return found


def signed(pair: tuple[Link, Link], message: dict[str, Any]) -> bytes:
    leader, member = pair
    member.send(message)
    leader.sock.settimeout(300.0)
    return leader.sock.recv(65536)


def test_a_message_that_is_said_again_kills_the_link(pair: tuple[Link, Link]) -> None:
    line = signed(pair, {"k": "done"})
    assert heard(pair[0], line) == [{"k": "done"}]
    assert pair[0].alive
    assert heard(pair[0], line + line) == [{"k": "done"}]
    assert not pair[0].alive


def test_a_message_sent_back_to_its_sender_kills_the_link(pair: tuple[Link, Link]) -> None:
    line = signed(pair, {"k": "done"})
    assert heard(pair[1], line) == []
    assert not pair[1].alive


@pytest.mark.parametrize("index", [0, 3, 20, -3, -10])
def test_a_changed_byte_kills_the_link(pair: tuple[Link, Link], index: int) -> None:
    line = bytearray(signed(pair, {"k": "value", "value": 0.5}))
    line[index] ^= 1
    assert heard(pair[0], bytes(line)) == []
    assert not pair[0].alive


@pytest.mark.parametrize(
    "line", [b"\n", b"garbage\n", b"[]\n", b'["a"]\n', b'["a",1]\n', b'[1,"a"]\n', b"\xff\n", b"[" * 100_000 + b"\n"]
)
def test_an_unsigned_line_kills_the_link_and_no_more(pair: tuple[Link, Link], line: bytes) -> None:
    leader, member = pair
    member.sock.settimeout(300.0)
    thread = threading.Thread(target=member.sock.sendall, args=(line,))
    thread.start()
    assert received(leader, bool) == []
    assert not leader.alive
    thread.join()


def test_a_line_without_end_kills_the_link_before_it_fills_the_memory(pair: tuple[Link, Link]) -> None:
    leader, member = pair
    member.sock.settimeout(300.0)

    def flood() -> None:
        with suppress(OSError):
            while True:
                member.sock.sendall(b"x" * 65536)

    thread = threading.Thread(target=flood)
    thread.start()
    assert received(leader, bool) == []
    assert len(leader._rest) <= links.LINE_BYTES + 65536
    leader.close()
    thread.join(timeout=300)
    assert not thread.is_alive()


def test_the_end_of_the_stream_ends_the_link(pair: tuple[Link, Link]) -> None:
    leader, member = pair
    member.close()
    assert received(leader, bool) == []
    assert not leader.alive
    leader.send({"k": "beat"})
    assert not leader.alive


STRANGERS = {
    "nothing": b"",
    "garbage": b"GET / HTTP/1.1\r\n\r\n",
    "binary": bytes(range(256)) + b"\n",
    "another document": b"[1, 2]\n",
    "deep": b"[" * 8000 + b"\n",
    "no text": b'{"join": 1, "nonce": null, "mac": ["a"]}\n',
    "half a letter": b'{"join": "\\ud800", "nonce": "\\ud800", "mac": "\\ud800"}\n',
    "no end": b"x" * 1_000_000,
}


def is_shown_out(sock: socket.socket) -> bool:
    """Whether the other side closes, after whatever it said before."""
    sock.settimeout(60.0)
    try:
        while sock.recv(4096):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize("data", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_stranger_is_sent_away(door: Leader, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", door.port)) as sock:
        try:
            sock.sendall(data)
        except OSError:
            assert data == STRANGERS["no end"], "only a flood is cut off in the middle"
        door.loop.ahead_s = 60.0
        assert is_shown_out(sock)
    assert door.links == []


def test_a_stranger_that_drips_is_sent_away(door: Leader) -> None:
    """One byte at a time moves no time limit: it is that of the whole handshake."""
    with socket.create_connection(("127.0.0.1", door.port)) as sock:
        assert sock.recv(4096).endswith(b"\n")
        for _ in range(3):
            sock.sendall(b"{")
        door.loop.ahead_s = HELLO_S + 1.0
        assert is_shown_out(sock)
    assert (door.links, door.refused) == ([], [])


def forged(line: bytes, name: str, value: str) -> bytes:
    return json.dumps({**json.loads(line), name: value}).encode() + b"\n"


def test_nobody_in_between_makes_it_another_leader(door: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members end their ranks when the leader is another one: which one it is stands in both proofs."""
    between = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(links, "join_ports", lambda run: [between.getsockname()[1]])

    def pass_on() -> None:
        member, _ = between.accept()
        with member, socket.create_connection(("127.0.0.1", door.port)) as leader:
            member.sendall(forged(leader.recv(4096), "instance", "another"))
            leader.sendall(member.recv(4096))
            member.sendall(leader.recv(4096))

    thread = threading.Thread(target=pass_on)
    thread.start()
    with pytest.raises(Broken):
        connect("127.0.0.1", RUN, TOKEN, {"node": 1}, 0)
    thread.join()
    between.close()
    assert (door.links, door.refused) == ([], ["Broken: its token is not this run's"])


def test_a_member_does_not_believe_a_leader_that_proves_another_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The welcome too is about one leader: one that would take an answer for another is left."""
    server = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(links, "join_ports", lambda run: [server.getsockname()[1]])

    def pretend() -> None:
        sock, _ = server.accept()
        with sock:
            links.say(sock, {"nonce": "00", "instance": "leader-1"})
            theirs = json.loads(sock.recv(4096))["nonce"]
            links.say(sock, {"mac": links.mac(TOKEN, "welcome", "00", theirs, "leader-2")})

    thread = threading.Thread(target=pretend)
    thread.start()
    with pytest.raises(Broken, match="its token is not this run's"):
        connect("127.0.0.1", RUN, TOKEN, {"node": 1}, 0)
    thread.join()
    server.close()


def test_the_leader_listens_on_the_first_free_port_of_the_run() -> None:
    ports = join_ports(RUN)
    taken = links.listen("127.0.0.1", RUN)
    first = ports.index(taken.getsockname()[1])
    second = links.listen("127.0.0.1", RUN)
    assert ports.index(second.getsockname()[1]) > first
    taken.close()
    second.close()


def test_no_port_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(links, "join_ports", lambda run: [taken.getsockname()[1]] * 2)
    with pytest.raises(Broken, match=r"no port to listen on for the other nodes: .*in use"):
        links.listen("127.0.0.1", RUN)
    taken.close()


def test_a_go_for_two_thousand_nodes_fits_a_link(pair: tuple[Link, Link]) -> None:
    """The largest message there is: one socket name per node."""
    leader, member = pair
    message = {"k": "go", "sockets": [f"podwright-segmentation-7f3k-{i}-4194304-{10**15}" for i in range(2000)]}
    leader.send(message)
    assert leader.alive
    assert received(member, bool) == [message]
