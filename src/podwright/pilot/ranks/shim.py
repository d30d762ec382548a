"""The rank role: `pilot.pyz rank -- COMMAND`, started by torchrun, mpirun, srun or the pilot itself, once per rank.

It reports to the node's pilot, takes binding and pipes from it, starts the command and waits, so that the exit code of
every rank is known whoever started it. There is one for each rank, beside the program: it starts with what Python has
at hand, and leaves out `socket`, `signal`, `json` and `typing`, which together take three times as long as all else.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # typeshed does not have it
import _socket as socket
import os
import sys

from ..system.prctl import die_with_parent
from .shim_protocol import END, find_rank, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, NoReturn, Tuple

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)
INT_BYTES = 4


class RankOrder:
    """What a rank is to be, as its pilot says."""

    def __init__(self, message: bytes) -> None:
        rows: Dict[str, List[str]] = {"env": [], "unset": [], "core": [], "files": ["0"], "cwd": [""], "stdin": [""]}
        for name, value in unpack(message):
            rows.setdefault(name, []).append(value)
        self.cwd, self.stdin, self.files = rows["cwd"][-1], rows["stdin"][-1], int(rows["files"][-1])
        self.cores = [int(core) for core in rows["core"]]
        self.env = dict(row.split("=", 1) for row in rows["env"])
        self.unset = rows["unset"]


def main(argv: List[str]) -> int:
    die_with_parent(os.getppid())
    numbers = find_rank(os.environ)
    names = os.environ.get("PODWRIGHT_SOCKETS", "").split()
    if numbers is None or not names:
        print("podwright: this process was not started by a launcher the pilot knows", file=sys.stderr)
        return 1
    rank, local_rank = numbers
    per_node = int(os.environ.get("PODWRIGHT_RANKS_PER_NODE", "1"))
    name = names[(rank // per_node) % len(names)]
    try:
        link, order, pipes = _report(name, rank, local_rank)
    except (OSError, ValueError) as error:
        print(f"podwright: rank {rank} cannot reach its pilot: {error}", file=sys.stderr)
        return 1
    return _run(argv[1:], link, order, pipes)


def _report(name: str, rank: int, local_rank: int) -> Tuple[socket.socket, RankOrder, List[int]]:
    """Say who we are; get the order for this rank and the write ends of its two pipes."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect("\0" + name)
    _say(link, f'{{"rank": {rank}, "local_rank": {local_rank}, "pid": {os.getpid()}}}')
    pipes: List[int] = []
    data = b""
    while not data.endswith(END):
        piece, ancillary, _, _ = link.recvmsg(65536, socket.CMSG_SPACE(2 * INT_BYTES))
        if not piece:
            raise ValueError("it refused this rank")
        data += piece
        for level, kind, ends in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                starts = range(0, len(ends) - INT_BYTES + 1, INT_BYTES)
                pipes += [int.from_bytes(ends[start : start + INT_BYTES], sys.byteorder) for start in starts]
    if len(pipes) != 2:
        raise ValueError("it sent no pipes")
    return link, RankOrder(data), pipes


def _say(link: socket.socket, line: str) -> None:
    link.sendall(line.encode() + b"\n")


def _run(command: List[str], link: socket.socket, order: RankOrder, pipes: List[int]) -> int:
    os.dup2(pipes[0], 1)
    os.dup2(pipes[1], 2)
    for pipe in pipes:
        os.close(pipe)
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    child = os.fork()
    if child == 0:
        link.close()
        die_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        _become(command, order)
    for number in FORWARDED:
        signal.signal(number, lambda number, _: _pass_on(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    _say(link, f'{{"child": {child}}}')
    _, status = os.waitpid(child, 0)
    try:
        _say(link, f'{{"status": {status}}}')
    except OSError:
        pass
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


def _pass_on(child: int, number: int) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        pass


def _become(command: List[str], order: RankOrder) -> NoReturn:
    """Take the rank's place, in the child, and turn into the command."""
    try:
        if order.cores:
            os.sched_setaffinity(0, order.cores)
    except OSError as error:
        print(f"podwright: not bound to cores {order.cores}: {error}", file=sys.stderr)
    _limit_files(order.files)
    environ = dict(os.environ)
    environ.update(order.env)
    for name in order.unset:
        environ.pop(name, None)
    try:
        os.chdir(order.cwd)
        _read_from(order.stdin)
        os.execvpe(command[0], command, environ)
    except FileNotFoundError:
        print(f"podwright: {command[0]}: command not found", file=sys.stderr, flush=True)
        os._exit(127)
    except OSError as error:
        print(f"podwright: {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(126)


def _read_from(path: str) -> None:
    """Open what the command reads as its standard input; without a file it stays what the launcher gave."""
    if not path:
        return
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        print(f"podwright: stdin: {path}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(126)
    os.dup2(file, 0)
    os.close(file)


def _limit_files(soft: int) -> None:
    """Give the command the limit that its node began with: a leader raises its own, and so that of all below it."""
    if soft <= 0:
        return
    import resource

    now, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < now or now == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
