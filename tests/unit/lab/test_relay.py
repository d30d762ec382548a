"""The way into a Kubernetes lab: every byte both ways, each side's end told to the other, quiet connections kept."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from podwright.lab import relay

WAIT_S = 300.0


@pytest.fixture
def inner() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)
        yield server


@pytest.fixture
def port(inner: socket.socket) -> Iterator[int]:
    """Starts the program with a listening socket it inherits, and gives that socket's port."""
    with socket.create_server(("127.0.0.1", 0)) as outer:
        words = [sys.executable, "-I", "-S", relay.__file__, f"{outer.fileno()}:{inner.getsockname()[1]}"]
        with subprocess.Popen(words, pass_fds=[outer.fileno()]) as running:
            yield int(outer.getsockname()[1])
            running.kill()


def meet(port: int, inner: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = socket.create_connection(("127.0.0.1", port), WAIT_S)
    server, _ = inner.accept()
    server.settimeout(WAIT_S)
    return client, server


def read_all(end: socket.socket) -> bytes:
    found = b""
    while chunk := end.recv(1 << 16):
        found += chunk
    return found


def test_bytes_go_both_ways_and_ends_are_told(port: int, inner: socket.socket) -> None:
    client, server = meet(port, inner)
    question, answer = b"q" * 100_000, b"a" * 300_000
    with client, server:
        client.sendall(question)
        client.shutdown(socket.SHUT_WR)
        assert read_all(server) == question
        server.sendall(answer)
        server.shutdown(socket.SHUT_WR)
        assert read_all(client) == answer


def test_an_answer_may_come_after_many_other_connections(port: int, inner: socket.socket) -> None:
    client, server = meet(port, inner)
    with client, server:
        client.shutdown(socket.SHUT_WR)
        for _ in range(400):
            one, other = meet(port, inner)
            with one, other:
                one.sendall(b"x")
                assert other.recv(1) == b"x"
        server.sendall(b"still here")
        assert client.recv(10) == b"still here"


def test_nobody_behind_the_door_ends_the_connection(port: int, inner: socket.socket) -> None:
    inner.close()
    with socket.create_connection(("127.0.0.1", port), WAIT_S) as client:
        assert client.recv(1) == b""
