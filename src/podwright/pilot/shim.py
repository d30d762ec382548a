"""The rank role: `pilot.pyz rank -- COMMAND`, started by torchrun, mpirun, srun or the pilot itself, once per rank.

It reports to the node's pilot, takes binding and pipes from it, starts the command and waits, so that the exit code of
every rank is known whoever started it. It imports little: it is compiled anew for each rank.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import sys
from typing import Any, Dict, List, NoReturn, Optional, Tuple

from .place import find_rank
from .processes import die_with_parent, exit_facts

FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")


def main(command: List[str]) -> int:
    die_with_parent(os.getppid())
    place = find_rank(os.environ)
    names = os.environ.get("PODWRIGHT_SOCKETS", "").split()
    if place is None or not names:
        print("podwright: this process was not started by a launcher the pilot knows", file=sys.stderr)
        return 1
    rank, local_rank = place
    per_node = int(os.environ.get("PODWRIGHT_RANKS_PER_NODE", "1"))
    name = names[(rank // per_node) % len(names)]
    try:
        link, reply, pipes = _report(name, {"rank": rank, "local_rank": local_rank, "pid": os.getpid()})
    except (OSError, ValueError) as error:
        print(f"podwright: rank {rank} cannot reach its pilot: {error}", file=sys.stderr)
        return 1
    return _run(command, link, reply, pipes)


def _report(name: str, hello: Dict[str, Any]) -> Tuple[socket.socket, Dict[str, Any], List[int]]:
    """Say who we are; get the order for this rank and the write ends of its two pipes."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.connect("\0" + name)
    link.sendall(json.dumps(hello).encode() + b"\n")
    pipes = array.array("i")
    data = b""
    while not data.endswith(b"\n"):
        piece, ancillary, _, _ = link.recvmsg(65536, socket.CMSG_SPACE(2 * pipes.itemsize))
        if not piece:
            raise ValueError("it refused this rank")
        data += piece
        for level, kind, fds in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                pipes.frombytes(fds[: len(fds) - len(fds) % pipes.itemsize])
    if len(pipes) != 2:
        raise ValueError("it sent no pipes")
    return link, json.loads(data), list(pipes)


def _run(command: List[str], link: socket.socket, reply: Dict[str, Any], pipes: List[int]) -> int:
    os.dup2(pipes[0], 1)
    os.dup2(pipes[1], 2)
    for pipe in pipes:
        os.close(pipe)
    parent = os.getpid()
    blocked = {getattr(signal, name) for name in FORWARDED}
    signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    child = os.fork()
    if child == 0:
        link.close()
        die_with_parent(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        _become(command, reply)
    for number in blocked:
        signal.signal(number, lambda number, _: _pass_on(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
    link.sendall(json.dumps({"child": child}).encode() + b"\n")
    _, status = os.waitpid(child, 0)
    code, name = exit_facts(status)
    try:
        link.sendall(json.dumps({"code": code, "signal": name}).encode() + b"\n")
    except OSError:
        pass
    return code


def _pass_on(child: int, number: int) -> None:
    try:
        os.kill(child, number)
    except ProcessLookupError:
        pass


def _become(command: List[str], reply: Dict[str, Any]) -> NoReturn:
    """Take the rank's place, in the child, and turn into the command."""
    try:
        if reply.get("cores"):
            os.sched_setaffinity(0, reply["cores"])
    except OSError as error:
        print(f"podwright: not bound to cores {reply['cores']}: {error}", file=sys.stderr)
    _limit_files(reply.get("files"))
    environ = dict(os.environ)
    environ.update(reply.get("env") or {})
    for name in reply.get("unset") or []:
        environ.pop(name, None)
    try:
        os.chdir(reply["cwd"])
        _read_from(reply.get("stdin"))
        os.execvpe(command[0], command, environ)
    except FileNotFoundError:
        print(f"podwright: {command[0]}: command not found", file=sys.stderr, flush=True)
        os._exit(127)
    except OSError as error:
        print(f"podwright: {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(126)


def _read_from(path: Optional[str]) -> None:
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


def _limit_files(soft: Optional[int]) -> None:
    """Give the command the limit that its node began with: a leader raises its own, and so that of all below it."""
    import resource

    now, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft is not None and soft > 0 and (soft < now or now == resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
