"""`podwright forward`: what it takes for a port, and what it says when there is nothing to reach."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from podwright import launch, spec
from podwright.cli.commands.run.forward import ports_of
from podwright.launch.forward import PortForward, expose
from podwright.runs import Home, RunFolder
from podwright.spec.problems import Refusal
from tests.fixtures.fake_engine import FakeEngine

PATIENCE_S = 300.0


@pytest.fixture
def session(tmp_path: Path) -> launch.Session:
    """An engine on whose nodes nobody listens."""
    return launch.Session(Home.open(tmp_path / "home"), engines={"local": FakeEngine})


@pytest.fixture
def run(session: launch.Session, tmp_path: Path) -> RunFolder:
    """A run of that session."""
    path = tmp_path / "workload.yaml"
    path.write_text("name: toy\ncommand: sleep 600\n")
    return launch.start(session, spec.load_workload(path)).folder


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@pytest.mark.parametrize(("text", "here", "there"), [("6006", 6006, 6006), ("8006:6006", 8006, 6006), ("0:1", 0, 1)])
def test_ports(text: str, here: int, there: int) -> None:
    assert ports_of(text) == (here, there)


@pytest.mark.parametrize("text", ["", "0", "6006:", ":6006:", "a", "70000", "6006:70000", "-1", "1:2:3", "²"])
def test_what_is_no_port(text: str) -> None:
    with pytest.raises(Refusal, match=r"PORT: .* is no port\n\nhint: such as 6006"):
        ports_of(text)


def test_a_port_that_is_taken_is_refused(session: launch.Session, run: RunFolder, server: socket.socket) -> None:
    taken = server.getsockname()[1]
    with pytest.raises(
        Refusal, match=f"port {taken} of this machine cannot be taken: another program has it\n\nhint: name"
    ):
        PortForward(session, run, 0, 6006, print).open(taken)


def test_a_connection_that_does_not_come_about_is_said_once_and_ends_nothing(
    session: launch.Session, run: RunFolder
) -> None:
    said: list[str] = []
    with closing(PortForward(session, run, 0, 6006, said.append)) as forward:
        host, port = forward.open(0).removeprefix("http://").split(":")
        for _ in range(2):
            with socket.create_connection((host, int(port)), PATIENCE_S) as client:
                assert client.recv(1) == b""
    assert (host, said) == ("127.0.0.1", ["port 6006 of node 0: Connection refused"])


class Closing(FakeEngine):
    """An engine whose nodes close every connection at once, or when their guest has closed it."""

    waits = False

    def connect(self, folder: RunFolder, node: int, port: int) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            if self.waits:
                threading.Thread(target=self._hear_out, args=(theirs.dup(),)).start()
        return ours

    def _hear_out(self, guest: socket.socket) -> None:
        with guest:
            guest.recv(1)


class Waiting(Closing):
    waits = True


@pytest.mark.parametrize(("engine", "says"), [(Closing, True), (Waiting, False)])
def test_only_a_connection_that_the_other_side_closes_is_worth_a_word(
    tmp_path: Path, engine: type[FakeEngine], says: bool
) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text("name: toy\ncommand: sleep 600\n")
    session = launch.Session(Home.open(tmp_path / "home"), engines={"local": engine})
    run = launch.start(session, spec.load_workload(path)).folder
    said: list[str] = []
    with closing(PortForward(session, run, 0, 6006, said.append)) as forward:
        host, port = forward.open(0).removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), PATIENCE_S) as client:
            if not says:
                client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert bool(said) is says


def test_a_target_without_routes_says_so(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text("name: toy\ncommand: 'true'\n")
    session = launch.Session(Home.open(tmp_path / "home"))
    run = launch.start(session, spec.load_workload(path))
    run.wait(PATIENCE_S)
    with pytest.raises(Refusal, match="--route: only OpenShift has routes; `podwright forward` without"):
        expose(session, run.folder, 0, 6006)
