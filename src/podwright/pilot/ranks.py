"""The ranks of one node in one attempt: started, bound, listened to, stopped."""

from __future__ import annotations

import array
import itertools
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
from functools import partial
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .logs import LAUNCHER, NodeLog, RankLog
from .loop import Loop
from .place import RANKS
from .processes import exit_facts, kill_tree, send
from .protocol import Order, parse_result
from .sealed import own_program

READ_BYTES = 65536
EXIT_KILLED = 137
"""As a shell says it: 128 and the number of SIGKILL."""
OF_THE_PILOT = frozenset(itertools.chain(*RANKS))
"""The engine's numbers of the pilot's own process: a rank that found them would take itself for it."""


class Go(NamedTuple):
    """What the leader tells every node to start an attempt with."""

    attempt: int
    master_addr: str
    master_port: int
    sockets: List[str]


class RankFailure(NamedTuple):
    """Why an attempt failed on this node; `rank` is None where no rank is to blame."""

    rank: Optional[int]
    code: int
    signal: Optional[str]
    after_s: float
    why: str
    tail: List[str]


class RankProcess:
    """One process as its shim reported it."""

    def __init__(self, number: int, local: int, link: socket.socket, log: RankLog) -> None:
        self.number, self.local, self.link, self.log = number, local, link, log
        self.child: Optional[int] = None
        self.code: Optional[int] = None
        self.began = time.monotonic()
        self.heard = self.began
        self.step: Optional[float] = None
        self.pipes: Dict[int, str] = {}
        self.rest = b""


class Ranks:
    """Starts this node's part of an attempt and tells `on_change` when something of it began or ended."""

    def __init__(self, order: Order, node: int, loop: Loop, log: NodeLog, say: Callable[..., None]) -> None:
        self._order, self._node, self._loop, self._log, self._say = order, node, loop, log, say
        self._launchers: Dict[int, RankLog] = {}
        self._pipes: Dict[int, int] = {}
        self._listener: Optional[socket.socket] = None
        self.socket_name = ""
        self.ranks: Dict[int, RankProcess] = {}
        self.failure: Optional[RankFailure] = None
        self.began = self.heard = time.monotonic()
        self.running = False
        self.places: List[Dict[str, Any]] = []
        self.on_change: Callable[[], None] = lambda: None
        self.on_result: Callable[[int, Dict[str, Any]], None] = lambda rank, values: None
        self.on_launch: Callable[[int], None] = lambda pid: None
        self.on_last_result: Callable[[int], None] = lambda rank: None
        self.on_rank: Callable[[int, int], None] = lambda rank, pid: None

    def listen(self) -> None:
        """Listen for shims on an abstract socket: it leaves nothing behind, no path is too long."""
        self.socket_name = f"podwright-{self._order.run}-{self._node}-{os.getpid()}-{time.monotonic_ns()}"
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._listener.bind("\0" + self.socket_name)
        self._listener.listen(256)
        self._listener.setblocking(False)
        self._loop.watch(self._listener, self._accept)

    def start(self, go: Go, environ: Dict[str, str], cwd: str, launch: bool) -> None:
        """Start an attempt; `launch` is False on nodes whose ranks another node's mpirun starts."""
        self.ranks, self.failure, self.running = {}, None, True
        self._cwd = cwd
        self.began = self.heard = time.monotonic()
        environ = {name: value for name, value in environ.items() if name not in OF_THE_PILOT}
        environ.update(
            MASTER_ADDR=go.master_addr,
            MASTER_PORT=str(go.master_port),
            PODWRIGHT_ATTEMPT=str(go.attempt),
            PODWRIGHT_SOCKETS=" ".join(go.sockets),
            PODWRIGHT_RANKS_PER_NODE=str(self._order.ranks_per_node),
        )
        if not launch:
            return
        for argv, extra in launch_lines(self._order, self._node, go):
            self._spawn(argv, {**environ, **extra}, cwd)

    def _spawn(self, argv: List[str], environ: Dict[str, str], cwd: str) -> None:
        log = self._log.rank(LAUNCHER)
        try:
            child = subprocess.Popen(
                argv,
                env=environ,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self.fail(RankFailure(None, 127, None, 0.0, f"{argv[0]}: {error.strerror}", []))
            return
        # Reaped by the loop, never by subprocess.
        child.returncode = 0
        assert child.stdout is not None
        pipe = os.dup(child.stdout.fileno())
        child.stdout.close()
        self.on_launch(child.pid)
        self._launchers[child.pid] = log
        self._pipes[child.pid] = pipe
        os.set_blocking(pipe, False)
        self._loop.watch(pipe, lambda: self._hear_launcher(pipe, log))

    def _hear_launcher(self, pipe: int, log: RankLog) -> bool:
        data = _read(pipe)
        if data:
            log.feed("e", data)
            return True
        if data == b"":
            self._loop.forget(pipe)
        return False

    def _accept(self) -> None:
        assert self._listener is not None
        try:
            link, _ = self._listener.accept()
        except OSError:
            return
        # Anybody may connect to an abstract socket; only this user is let in.
        _, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid() or not self.running:
            link.close()
            return
        link.settimeout(5.0)
        try:
            self._welcome(link, json.loads(link.recv(READ_BYTES)))
        except (OSError, ValueError, KeyError):
            link.close()

    def _welcome(self, link: socket.socket, hello: Dict[str, Any]) -> None:
        """Take a shim in, not a second one of a number: two processes must not believe they are one rank."""
        number = int(hello["rank"])
        first = self._node * self._order.ranks_per_node
        local = number - first
        if number in self.ranks or not 0 <= local < self._order.ranks_per_node:
            link.close()
            return
        rank = RankProcess(number, local, link, self._log.rank(str(number)))
        place = self._place(local)
        reply = {"cwd": self._cwd, "cores": place.get("cores"), "env": self._contract(number, local, place)}
        reply["unset"] = ["PODWRIGHT_SOCKETS", "PODWRIGHT_RANKS_PER_NODE"]
        ends: List[int] = []
        for stream in "oe":
            read, write = os.pipe()
            os.set_blocking(read, False)
            rank.pipes[read] = stream
            ends.append(write)
            self._loop.watch(read, partial(self._hear, rank, read))
        data = json.dumps(reply).encode() + b"\n"
        link.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", ends))])
        for end in ends:
            os.close(end)
        link.setblocking(False)
        self.ranks[number] = rank
        self._loop.watch(link, lambda: self._hear_shim(rank))

    def _place(self, local: int) -> Dict[str, Any]:
        """Return where a local rank runs; nothing where ranks are not bound."""
        return self.places[local] if local < len(self.places) else {}

    def _contract(self, number: int, local: int, place: Dict[str, Any]) -> Dict[str, str]:
        """Return the variables of the torchrun contract, whoever started the rank; torchrun itself sets the same."""
        names = {
            "RANK": number,
            "LOCAL_RANK": local,
            "WORLD_SIZE": self._order.world_size,
            "LOCAL_WORLD_SIZE": self._order.ranks_per_node,
            "GROUP_RANK": self._node,
        }
        return {**{name: str(value) for name, value in names.items()}, **place.get("env", {})}

    def _hear(self, rank: RankProcess, pipe: int) -> bool:
        data = _read(pipe)
        if data is None:
            return False
        if data == b"":
            self._loop.forget(pipe)
            return False
        rank.heard = self.heard = time.monotonic()
        self._results(rank, rank.log.feed(rank.pipes[pipe], data))
        return True

    def _results(self, rank: RankProcess, lines: List[bytes]) -> None:
        for line in lines:
            values = parse_result(line)
            if values:
                rank.step = values.get("step", rank.step)
                self.on_result(rank.number, values)

    def _hear_shim(self, rank: RankProcess) -> None:
        try:
            data = rank.link.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        rank.rest += data
        *lines, rank.rest = rank.rest.split(b"\n")
        for line in lines:
            self._take(rank, json.loads(line))
        if not data:
            self._loop.forget(rank.link)
            rank.link.close()
            # The shim was killed: its child dies with it.
            if rank.code is None:
                self._end(rank, EXIT_KILLED, "SIGKILL")

    def _take(self, rank: RankProcess, message: Dict[str, Any]) -> None:
        if "child" in message:
            rank.child = message["child"]
            place = self._place(rank.local)
            facts = {name: place.get(name) for name in ("cores", "gpu", "numa", "nics")}
            self._say("rank", rank=rank.number, local_rank=rank.local, pid=rank.child, **facts)
            self.on_rank(rank.number, message["child"])
            self.on_change()
        elif "code" in message:
            self._end(rank, message["code"], message["signal"])

    def _end(self, rank: RankProcess, code: int, name: Optional[str]) -> None:
        rank.code = code
        self._drain(rank)
        after_s = round(time.monotonic() - rank.began, 3)
        self._say("rank_end", rank=rank.number, code=code, signal=name, after_s=after_s)
        if code != 0:
            self.fail(RankFailure(rank.number, code, name, after_s, _how(code, name), _text(rank.log)))
        self.on_change()

    def _drain(self, rank: RankProcess) -> None:
        """Read what is in the pipes; a daemon the rank left behind may hold them open and is not waited for."""
        for pipe in rank.pipes:
            while self._hear(rank, pipe):
                pass
            self._loop.forget(pipe)
            os.close(pipe)
        rank.pipes = {}
        self._results(rank, rank.log.end())
        self.on_last_result(rank.number)
        rank.log.close()

    def fail(self, failure: RankFailure) -> None:
        """Take note of why the attempt failed here; what comes after the first reason follows from it."""
        if self.failure is None:
            self.failure = failure
            self.on_change()

    def check(self) -> None:
        """Look at launchers that ended. A launcher that fails while its ranks are fine is a failure of its own."""
        for pid in [pid for pid in self._launchers if pid in self._loop.ended]:
            code, name = exit_facts(self._loop.ended.pop(pid))
            log = self._launchers.pop(pid)
            self._close_launcher(pid, log)
            after_s = round(time.monotonic() - self.began, 3)
            started, expected = len(self.ranks), self._order.ranks_per_node
            rank_failed = any(rank.code for rank in self.ranks.values())
            if code != 0 and not rank_failed:
                self.fail(RankFailure(None, code, name, after_s, f"the launcher {_how(code, name)}", _text(log)))
            elif code == 0 and not self._launchers and started < expected:
                why = f"the launcher ended when {started} of {expected} ranks had started"
                self.fail(RankFailure(None, 1, None, after_s, why, _text(log)))
            self.on_change()

    def _close_launcher(self, pid: int, log: RankLog) -> None:
        pipe = self._pipes.pop(pid)
        while self._hear_launcher(pipe, log):
            pass
        self._loop.forget(pipe)
        os.close(pipe)
        log.end()
        log.close()

    @property
    def reported(self) -> int:
        """Return how many distinct ranks have started here."""
        return sum(1 for rank in self.ranks.values() if rank.child is not None)

    @property
    def idle(self) -> bool:
        return not self._launchers and all(rank.code is not None for rank in self.ranks.values())

    @property
    def done(self) -> bool:
        """Return whether every rank of this node came and ended well."""
        whole = len(self.ranks) == self._order.ranks_per_node
        return self.idle and whole and all(rank.code == 0 for rank in self.ranks.values())

    def signal(self, number: int) -> None:
        """Signal the ranks alone: a launcher that got it too would end them before they can write a checkpoint."""
        for rank in self.ranks.values():
            if rank.child is not None and rank.code is None:
                send(rank.child, number)
        if number in (signal.SIGTERM, signal.SIGINT) and not self.ranks:
            for pid in self._launchers:
                send(pid, number)

    def kill(self) -> None:
        """Kill the whole tree beneath this pilot, until nothing of it is left."""
        kill_tree(os.getpid())

    def finish(self) -> None:
        """Close every log after an attempt; nothing of it runs any more."""
        self.running = False
        for pid, log in list(self._launchers.items()):
            self._close_launcher(pid, log)
            self._loop.ended.pop(pid, None)
        self._launchers = {}
        for rank in self.ranks.values():
            if rank.code is None:
                self._end(rank, EXIT_KILLED, "SIGKILL")
            self._loop.forget(rank.link)
            rank.link.close()


def launch_lines(order: Order, node: int, go: Go) -> List[Any]:
    """Return [(argv, extra environment)] that start this node's ranks: the one place that knows the launchers."""
    shim = [sys.executable, "-I", "-S", own_program(), "rank", "--", *order.command]
    if order.launcher == "torchrun":
        return [(torchrun_line(order, node, go, shim), {})]
    if order.launcher == "mpi":
        extra = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(order.world_size)]
        return [([*(order.mpi or mpirun), *shim], extra)]
    first, count = node * order.ranks_per_node, order.ranks_per_node
    return [(shim, {"RANK": str(first + local), "LOCAL_RANK": str(local)}) for local in range(count)]


def torchrun_line(order: Order, node: int, go: Go, shim: List[str]) -> List[str]:
    """Return the line of torchrun, of the interpreter the command names, so that both see the same PyTorch."""
    program = order.command[0]
    is_python = re.fullmatch(r"python(3(\.\d+)?)?", os.path.basename(program)) is not None
    torchrun = [program, "-m", "torch.distributed.run"] if is_python else ["torchrun"]
    meeting = f"--local-addr={order.bind}" if order.engine == "local" else "--rdzv-backend=static"
    return [
        *torchrun,
        f"--nnodes={order.nodes}",
        f"--node-rank={node}",
        f"--nproc-per-node={order.ranks_per_node}",
        f"--master-addr={go.master_addr}",
        f"--master-port={go.master_port}",
        meeting,
        "--max-restarts=0",
        "--no-python",
        *shim,
    ]


def _read(pipe: int) -> Optional[bytes]:
    """Return bytes, b"" at the end, None when there is nothing now."""
    try:
        return os.read(pipe, READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _how(code: int, signal_name: Optional[str]) -> str:
    return f"was killed by {signal_name}" if signal_name else f"exited with {code}"


def _text(log: RankLog) -> List[str]:
    return [line.decode("utf-8", "replace")[:500] for line in log.tail]
