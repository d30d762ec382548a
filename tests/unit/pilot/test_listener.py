"""The door of a socket: who is let in, who is shown out, and when nobody is."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from podwright.pilot.system.listener import HELLO_BYTES, HELLO_S, Listener
from podwright.pilot.system.loop import Loop

FILES = 64
"""Which give sixteen places beside those of nodes that are expected, and one address eight."""
EXPECTED = 2
OF_ALL, OF_ONE = EXPECTED + 16, EXPECTED + 8


class DoorLoop(Loop):
    """One whose time the test moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.t = 1000.0

    def now(self) -> float:
        return self.t


class Fallible:
    """A listener that may have no file for whoever waits."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.tries, self.fails = 0, False

    def accept(self) -> tuple[socket.socket, Any]:
        self.tries += 1
        if self.fails:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self._sock.accept()

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()


class House:
    """A door on the loopback, and those who came."""

    def __init__(self) -> None:
        self.loop = DoorLoop()
        sock = socket.create_server(("0.0.0.0", 0), backlog=1024)
        sock.setblocking(False)
        self.port = sock.getsockname()[1]
        self.listener = Fallible(sock)
        self.heard: list[bytes] = []
        self.let_in: list[socket.socket] = []
        self.door = Listener(self.loop, "test", self.listener, lambda: EXPECTED, self.greet, FILES)  # type: ignore[arg-type]
        self.outside: list[socket.socket] = []

    def greet(self, sock: socket.socket) -> Callable[[bytes], None]:
        self.let_in.append(sock)
        sock.sendall(b"who?\n")
        return self.heard.append

    def come(self, address: str = "127.0.0.1") -> socket.socket:
        sock = socket.create_connection((address, self.port), source_address=(address, 0))
        self.outside.append(sock)
        return sock

    def turn(self, times: int = 10) -> None:
        """Enough turns for all that waits, each with the rest that a door takes."""
        for _ in range(times):
            self.loop.turn(0.05)

    def inside(self) -> int:
        return sum(sock.fileno() >= 0 for sock in self.let_in)

    def is_in(self, sock: socket.socket) -> bool:
        """Whether the door has kept it: what it would say would be heard."""
        sock.setblocking(False)
        try:
            while sock.recv(4096):
                pass
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        self.door.close()
        for sock in (*self.outside, *self.let_in):
            sock.close()
        self.loop._selector.close()


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    made.close()


def test_a_line_is_taken_whole_however_it_comes(house: House) -> None:
    sock = house.come()
    for piece in (b"no", b"de", b" 1\n"):
        sock.sendall(piece)
        house.turn(1)
    house.turn(3)
    assert house.heard == [b"node 1\n"]
    assert house.is_in(sock), "who has said who it is belongs to who took it"


def test_one_address_has_fewer_places_than_all(house: House) -> None:
    strangers = [house.come("127.0.0.2") for _ in range(OF_ALL)]
    house.turn()
    assert house.inside() == OF_ONE
    assert [house.is_in(sock) for sock in strangers] == [False] * (OF_ALL - OF_ONE) + [True] * OF_ONE
    other = house.come("127.0.0.3")
    house.turn()
    assert house.is_in(other)
    assert house.inside() == OF_ONE + 1, "there was room: nobody had to go for it"


def test_at_a_full_door_the_address_with_the_most_guests_gives_way(house: House) -> None:
    crowd = [house.come("127.0.0.2") for _ in range(OF_ONE)]
    few = [house.come("127.0.0.3") for _ in range(OF_ALL - OF_ONE)]
    house.turn()
    assert house.inside() == OF_ALL
    node = house.come("127.0.0.1")
    house.turn()
    assert (house.inside(), house.is_in(node)) == (OF_ALL, True)
    assert [house.is_in(sock) for sock in crowd] == [False] + [True] * (OF_ONE - 1)
    assert all(house.is_in(sock) for sock in few)
    node.sendall(b"node 1\n")
    house.turn(2)
    assert house.heard == [b"node 1\n"]


def test_who_came_in_a_moment_ago_is_not_shown_out(house: House) -> None:
    """However many come at once, one turn lets in fewer than an address has places."""
    strangers = [house.come() for _ in range(100)]
    house.turn(1)
    assert 0 < len(house.let_in) < OF_ONE
    assert house.inside() == len(house.let_in)
    house.turn(100)
    assert len(house.let_in) == 100
    assert [house.is_in(sock) for sock in strangers].count(True) == OF_ONE


def test_who_says_nothing_is_shown_out_in_time(house: House) -> None:
    silent, speaker = house.come(), house.come()
    house.turn()
    speaker.sendall(b"me\n")
    house.turn(2)
    house.loop.t += HELLO_S + 0.1
    while house.is_in(silent):
        house.turn(1)
    assert house.heard == [b"me\n"]
    assert house.is_in(speaker)
    assert not house.loop._timers, "an empty house needs no clock"


@pytest.mark.parametrize("said", [b"", b"half", b"x" * HELLO_BYTES])
def test_who_leaves_or_never_ends_is_forgotten(house: House, said: bytes) -> None:
    sock = house.come()
    sock.sendall(said)
    sock.shutdown(socket.SHUT_WR)
    house.turn()
    assert (house.heard, house.inside()) == ([], 0)


def test_without_files_the_door_rests_and_gives_one_back(house: House) -> None:
    first = house.come()
    house.turn()
    house.listener.fails = True
    tries = house.listener.tries
    second = house.come()
    house.turn(3)
    assert not house.is_in(first)
    assert house.listener.tries - tries <= 3, "a listener that cannot accept is not asked all the time"
    house.listener.fails = False
    while not house.is_in(second) or len(house.let_in) < 2:
        house.turn(1)
    second.sendall(b"me\n")
    house.turn(3)
    assert house.heard == [b"me\n"]


def test_a_fault_of_who_takes_the_line_costs_the_guest_only(house: House) -> None:
    def fail(line: bytes) -> None:
        raise TypeError("a list has no rank")

    house.heard = type("Faulty", (list,), {"append": staticmethod(fail)})()
    sock = house.come()
    house.turn()
    sock.sendall(b"[1]\n")
    house.turn(2)
    assert not house.is_in(sock)
    assert house.is_in(house.come())


def test_a_door_that_closes_shows_everybody_out(house: House) -> None:
    sock = house.come()
    house.turn()
    house.door.close()
    assert not house.is_in(sock)
    assert (house.inside(), house.loop._timers) == (0, {})
