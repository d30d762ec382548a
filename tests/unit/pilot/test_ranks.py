"""What may come through the socket of a node's ranks: a process of this user may say anything there."""

from __future__ import annotations

import array
import os
import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.masking import Masker
from podwright.pilot.protocol import RANK_NAMES
from podwright.pilot.ranks.logs import NodeLog
from podwright.pilot.ranks.node_ranks import Ranks
from podwright.pilot.ranks.shim import RankOrder
from podwright.pilot.ranks.shim_protocol import OWN_RANK
from podwright.pilot.system.loop import Loop
from tests.unit.pilot.made import ORDER


class Attempt:
    """The ranks of one node, of which the test is every process."""

    def __init__(self, folder: Path, **order: Any) -> None:
        self.loop = Loop()
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.log = NodeLog(str(folder), 1 << 20, Masker([]), lambda: 0.0)
        self.ranks = Ranks(ORDER._replace(**{"ranks_per_node": 2, **order}), 0, self.loop, self.log, self.say)
        self.ranks.listen()
        self.ranks.running, self.ranks._cwd = True, str(folder)
        self.outside: list[socket.socket] = []

    def say(self, kind: str, **fields: Any) -> None:
        self.said.append((kind, fields))

    def shim(self, hello: bytes = b"") -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect("\0" + self.ranks.socket_name)
        sock.setblocking(False)
        self.outside.append(sock)
        self.turn()
        sock.sendall(hello)
        self.turn()
        return sock

    def turn(self) -> None:
        for _ in range(5):
            self.loop.turn(0.01)

    def reply(self, sock: socket.socket) -> RankOrder | None:
        """The order for a rank; None where it is refused."""
        data, ancillary, _, _ = sock.recvmsg(65536, socket.CMSG_SPACE(2 * array.array("i").itemsize))
        for _, _, ends in ancillary:
            for end in array.array("i", ends):
                os.close(end)
        return RankOrder(data) if data else None

    def close(self) -> None:
        assert self.ranks._listener is not None
        self.ranks.finish()
        self.ranks._listener.close()
        self.log.close()
        for sock in self.outside:
            sock.close()
        self.loop._selector.close()


@pytest.fixture
def attempt(tmp_path: Path) -> Iterator[Attempt]:
    attempt = Attempt(tmp_path)
    yield attempt
    attempt.close()


HELLOS = [
    b"[1]\n",
    b"7\n",
    b'{"rank": null}\n',
    b'{"rank": {}}\n',
    b'{"rank": 2}\n',
    b'{"rank": -1}\n',
    b"\xff\n",
    b"{}\n",
]


@pytest.mark.parametrize("hello", [*HELLOS, b"[" * 5000 + b"\n"])
def test_a_hello_of_another_kind_is_refused_and_the_next_one_is_not(attempt: Attempt, hello: bytes) -> None:
    stranger = attempt.shim(hello)
    assert attempt.reply(stranger) is None
    rank = attempt.shim(b'{"rank": 1}\n')
    reply = attempt.reply(rank)
    assert reply is not None
    assert (reply.env["RANK"], reply.env["LOCAL_RANK"]) == ("1", "1")
    assert reply.files == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def test_a_plain_process_is_told_of_no_others(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, nodes=1, ranks_per_node=1, launcher="plain")
    reply = attempt.reply(attempt.shim(b'{"rank": 0}\n'))
    attempt.close()
    assert reply is not None
    assert reply.env == {}
    assert {*RANK_NAMES, *OWN_RANK, "SLURM_NTASKS"} <= set(reply.unset)


def test_a_rank_on_slurm_has_the_numbers_of_a_task(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, nodes=2, ranks_per_node=2, engine="slurm")
    reply = attempt.reply(attempt.shim(b'{"rank": 1}\n'))
    attempt.close()
    assert reply is not None
    numbers = {name: value for name, value in reply.env.items() if name.startswith("SLURM_")}
    assert numbers == {
        "SLURM_PROCID": "1",
        "SLURM_LOCALID": "1",
        "SLURM_NTASKS": "4",
        "SLURM_NPROCS": "4",
        "SLURM_NTASKS_PER_NODE": "2",
    }


@pytest.mark.parametrize(("launcher", "files"), [("ranks", ["a.txt", "a.txt"]), ("mpi", ["a.txt", ""])])
def test_which_ranks_read_the_input(tmp_path: Path, launcher: str, files: list[str]) -> None:
    attempt = Attempt(tmp_path, launcher=launcher, stdin="a.txt")
    replies = [attempt.reply(attempt.shim(b'{"rank": %d}\n' % rank)) for rank in range(2)]
    attempt.close()
    assert [reply and reply.stdin for reply in replies] == files


def test_a_silent_hello_holds_nobody_up(attempt: Attempt) -> None:
    silent = attempt.shim()
    rank = attempt.shim(b'{"rank": 0}\n')
    assert attempt.reply(rank) is not None
    silent.sendall(b'{"rank": 1}\n')
    attempt.turn()
    assert attempt.reply(silent) is not None


def test_a_second_process_of_a_number_is_refused(attempt: Attempt) -> None:
    assert attempt.reply(attempt.shim(b'{"rank": 0}\n')) is not None
    assert attempt.reply(attempt.shim(b'{"rank": 0}\n')) is None


def test_what_a_shim_says_that_means_nothing_is_passed_over(attempt: Attempt) -> None:
    rank = attempt.shim(b'{"rank": 0}\n')
    assert attempt.reply(rank) is not None
    rank.sendall(b'no json\n[1]\n{"child": "x"}\n{"status": null}\n{"status": "0"}\n{"status": %d}\n' % 2**70)
    rank.sendall(b'{"child": 4711}\n{"child": 4712}\n{"status": 768}\n{"status": 0}\n')
    attempt.turn()
    told = [(kind, fields.get("pid"), fields.get("code")) for kind, fields in attempt.said]
    assert told == [("rank", 4711, None), ("rank_end", None, 3)]


def test_a_line_of_a_shim_that_never_ends_is_the_end_of_its_rank(attempt: Attempt) -> None:
    rank = attempt.shim(b'{"rank": 0}\n')
    assert attempt.reply(rank) is not None
    rank.setblocking(True)
    rank.sendall(b"x" * 65537)
    attempt.turn()
    assert [(kind, fields["code"]) for kind, fields in attempt.said] == [("rank_end", 137)]


@pytest.fixture
def no_files() -> Iterator[Callable[[], None]]:
    """Takes all files away from this process; they come back with the test's end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_rank_for_which_there_are_no_files_is_refused(attempt: Attempt, no_files: Callable[[], None]) -> None:
    rank = attempt.shim()
    no_files()
    rank.sendall(b'{"rank": 0}\n')
    attempt.turn()
    assert attempt.reply(rank) is None
    assert attempt.ranks.ranks == {}


def test_a_launcher_for_which_there_are_no_files_is_a_failure(attempt: Attempt, no_files: Callable[[], None]) -> None:
    no_files()
    attempt.ranks._launch(["true"], {}, "/")
    assert attempt.ranks.failure is not None
    assert attempt.ranks.failure.why == "the launcher cannot be started: Too many open files"


def test_a_rank_that_ends_with_its_launcher_is_heard_before_the_launcher_is_blamed(attempt: Attempt) -> None:
    """On a busy machine both have ended when the pilot looks, and only the launcher was looked at so far."""
    shim = attempt.shim(b'{"rank": 0}\n')
    _, ((_, _, ends),), _, _ = shim.recvmsg(65536, socket.CMSG_SPACE(2 * array.array("i").itemsize))
    out, err = array.array("i", ends)
    pid = attempt.ranks._launchers.start(["/bin/sh", "-c", "exit 127"], dict(os.environ), "/")
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    os.write(err, b"podwright: no-such-program: command not found\n")
    shim.sendall(b'{"child": 5}\n{"status": %d}\n' % (127 << 8))
    for end in (out, err):
        os.close(end)
    attempt.loop.reap()
    attempt.ranks.check()
    failure = attempt.ranks.failure
    assert failure is not None
    assert (failure.rank, failure.code) == (0, 127)
    assert failure.tail == ["podwright: no-such-program: command not found"]
