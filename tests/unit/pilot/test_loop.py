"""The loop: descriptors, timers, signals, ended children."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from podwright.pilot.system.loop import WATCHED, Loop


@pytest.fixture
def loop() -> Iterator[Loop]:
    """One that catches signals; the process gets its own handlers back."""
    kept = {number: signal.getsignal(number) for number in (*WATCHED, signal.SIGCHLD)}
    made = Loop()
    made.catch_signals()
    yield made
    signal.set_wakeup_fd(-1)
    for number, handler in kept.items():
        signal.signal(number, handler)
    for key in list(made._selector.get_map().values()):
        made.forget(key.fileobj)
        os.close(key.fd)
    os.close(made._wake)
    made._selector.close()


def test_a_descriptor_that_was_closed_unforgotten_can_be_watched_again() -> None:
    loop, heard = Loop(), []
    old, other = socket.socketpair()
    loop.watch(old, lambda: heard.append("old"))
    number = old.fileno()
    old.close()
    other.close()
    new, peer = socket.socketpair()
    assert number in (new.fileno(), peer.fileno())
    watched, sender = (new, peer) if new.fileno() == number else (peer, new)
    loop.watch(watched, lambda: heard.append("new"))
    sender.send(b"x")
    loop.turn(1.0)
    assert heard == ["new"]
    for sock in (new, peer):
        loop.forget(sock)
        sock.close()
    loop._selector.close()


def test_what_a_callback_closed_is_not_called_in_the_same_turn() -> None:
    loop, called = Loop(), []
    pairs = [os.pipe(), os.pipe()]

    def take(mine: int, other: int) -> None:
        called.append(mine)
        loop.forget(other)

    (first, _), (second, _) = pairs
    loop.watch(first, lambda: take(first, second))
    loop.watch(second, lambda: take(second, first))
    for _, write in pairs:
        os.write(write, b"x")
    loop.turn(1.0)
    assert len(called) == 1
    for pair in pairs:
        for end in pair:
            os.close(end)
    loop._selector.close()


def test_signals_are_given_back_once(loop: Loop) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
    assert loop.turn(1.0) == {signal.SIGUSR1}
    assert loop.turn(0.0) == set()
    os.kill(os.getpid(), signal.SIGTERM)
    assert loop.signals() == {signal.SIGTERM}


def test_a_look_at_signals_leaves_children_to_who_waits_for_them(loop: Loop) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(7)"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    loop.signals()
    assert child.wait() == 7


def test_ended_children_are_noted(loop: Loop) -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(7)"])
    while child.pid not in loop.ended:
        loop.turn(1.0)
    assert os.WEXITSTATUS(loop.ended.pop(child.pid)) == 7
    child.returncode = 7


def test_what_is_called_soon_runs_in_the_next_turn(loop: Loop) -> None:
    called: list[int] = []
    for i in range(3):
        loop.call_soon(lambda i=i: called.append(i))
    loop.turn(5.0)
    assert called == [0, 1, 2]


def test_a_timer_goes_on_until_it_is_stopped(loop: Loop) -> None:
    called: list[str] = []
    loop.every("a", 0.0, lambda: called.append("replaced"))
    loop.every("a", 0.0, lambda: called.append("a"))
    loop.turn(1.0)
    loop.turn(1.0)
    loop.stop("a")
    loop.stop("a")
    loop.turn(0.0)
    assert called == ["a", "a"]
