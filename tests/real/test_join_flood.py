"""Strangers crowd the join port while threads or files are few: the run joins and succeeds all the same."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from podwright.pilot.protocol import join_ports
from tests.contract.sites import END_S, until
from tests.real.cast import Cast, cast

__all__ = ["cast"]

STRANGERS = 300
TASKS, FILES = 64, 128
UID = 50_000 + os.getpid() % 10_000
"""A user of this process alone: the kernel counts the tasks of all processes of a user, and does not count root's."""


class Flood:
    """Connections that say nothing; one that is closed is opened again."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.greeted = 0
        self._thread.start()

    def _run(self) -> None:
        for _ in range(STRANGERS):
            self._open()
        while not self._ended.is_set():
            for key, _ in self._selector.select(0.05):
                self._hear(key.fileobj)

    def _open(self) -> None:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", self._port))
        self._selector.register(sock, selectors.EVENT_READ)

    def _hear(self, sock: socket.socket) -> None:
        with suppress(OSError):
            if sock.recv(4096):
                self.greeted += 1
                return
        self._selector.unregister(sock)
        sock.close()
        # Where nobody listens a closed one comes back at once: this leaves time to others.
        self._ended.wait(0.001)
        self._open()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()
        self._selector.close()


@pytest.fixture
def flood(cast: Cast) -> Iterator[list[Flood]]:
    """Holds the floods that a test begins."""
    floods: list[Flood] = []
    yield floods
    for each in floods:
        each.close()


def port_of(run: str) -> int:
    """The port of a run at which a leader says something to whoever comes."""
    for port in join_ports(run):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=10.0) as sock:
            if b"nonce" in sock.recv(4096):
                return port
    raise AssertionError(f"nobody leads {run}")


def few_tasks() -> list[str]:
    """Words that let a program have few tasks: as root by another user, who may still read what is root's."""
    if os.getuid():
        own = sum(len(list((path / "task").iterdir())) for path in processes() if path.stat().st_uid == os.getuid())
        return ["prlimit", f"--nproc={own + TASKS}", "--"]
    user = [f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
    rights = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    return ["setpriv", *user, *rights, "--", "prlimit", f"--nproc={TASKS}", "--"]


def processes() -> list[Path]:
    return [path for path in Path("/proc").iterdir() if path.name.isdecimal()]


@pytest.fixture
def control_group() -> Iterator[list[str]]:
    """Gives words that let a program and all that it starts have few tasks: its control group has a `pids.max`."""
    for root in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        group = root / f"podwright-flood-{os.getpid()}"
        if not root.is_dir():
            continue
        group.mkdir()
        if (group / "pids.max").exists():
            break
        group.rmdir()
    (group / "pids.max").write_text(str(TASKS))
    yield ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh"]
    until(lambda: not (group / "cgroup.procs").read_text(), "all of it has ended")
    group.rmdir()


def see_it_through(cast: Cast, flood: list[Flood], within: list[str]) -> None:
    """Strangers crowd the door of a leader that runs within a limit; its node comes in all the same."""
    cast.order("--steps 20 --pause 0.1")
    leader = cast.pilot(0, within=within)
    until(lambda: cast.events("joined"), "the leader listens")
    flood.append(Flood(port_of(cast.run)))
    until(lambda: flood[0].greeted > STRANGERS or leader.poll() is not None, "more strangers than there is room for")
    member = cast.pilot(1)
    assert (leader.wait(END_S), member.wait(END_S)) == (0, 0)
    assert len(cast.events("go")) == 1, "no attempt was lost"
    assert cast.record().state == "succeeded"


LIMITS = {"tasks": few_tasks, "files": lambda: ["prlimit", f"--nofile={FILES}", "--"]}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_flooded_leader_lets_its_node_in_and_the_run_succeeds(cast: Cast, flood: list[Flood], limit: str) -> None:
    see_it_through(cast, flood, LIMITS[limit]())


@pytest.mark.netns
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: sudo .venv/bin/python -m pytest -m netns")
def test_a_flooded_leader_in_a_small_control_group_too(
    cast: Cast, flood: list[Flood], control_group: list[str]
) -> None:
    see_it_through(cast, flood, control_group)


def test_a_leader_takes_all_files_it_may_and_its_ranks_keep_their_own_limit(cast: Cast) -> None:
    cast.order("", command=["sh", "-c", "ulimit -n; sleep 1000"], grace_s=1.0)
    leader = cast.pilot(0, within=["prlimit", "--nofile=512:1024", "--"])
    cast.pilot(1)
    log = cast.folder / "record" / "n0.r0" / "rank0.log"
    until(lambda: log.exists() and log.read_text(), "the rank says its limit")
    assert log.read_text() == "512\n"
    limits = Path("/proc", str(leader.pid), "limits").read_text().splitlines()
    assert [line.split()[3:5] for line in limits if line.startswith("Max open files")] == [["1024", "1024"]]
