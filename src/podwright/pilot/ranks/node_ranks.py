"""The ranks of one node in one attempt: started, bound, listened to, stopped."""

from __future__ import annotations

import array
import itertools
import json
import os
import resource
import signal
import socket
import struct
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..protocol import OWN_TIME, Order, parse_line
from ..system.listener import Listener, Take, open_socket
from ..system.loop import Loop
from ..system.processes import abort, exit_facts, kill_tree, send
from .launchers import MAX_READ_BYTES, Go, Launchers, LaunchFailed, hidden_names, launch_lines, rank_variables, read_now
from .logs import NodeLog, RankLog
from .shim_protocol import RANKS, pack

MAX_STATUS = 0xFFFF
EXIT_KILLED = 137
"""As a shell says it: 128 and the number of SIGKILL."""
OF_THE_PILOT = frozenset(itertools.chain(*RANKS))
"""The engine's numbers of the pilot's own process: a rank that found them would take itself for it."""


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
        self.time: Dict[str, float] = {}
        """What its program told last of its own time."""
        self.pipes: Dict[int, str] = {}
        self.rest = b""

    def note(self, told: Dict[str, Any]) -> None:
        """Note how far its program is, and what it says of its own time."""
        self.step = told.get("step", self.step)
        self.time.update((name, told[name]) for name in told if name.startswith(OWN_TIME))


class Ranks:
    """Starts this node's part of an attempt and calls `on_change` when something of it began or ended."""

    def __init__(self, order: Order, node: int, loop: Loop, log: NodeLog, say: Callable[..., None]) -> None:
        self._order, self._node, self._loop, self._log, self._say = order, node, loop, log, say
        self._launchers = Launchers(loop, log)
        self._listener: Optional[Listener] = None
        self._files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.socket_name = ""
        self.ranks: Dict[int, RankProcess] = {}
        self.failure: Optional[RankFailure] = None
        self.stack_of: Optional[int] = None
        """The rank whose stack is reported when it ends: it hangs, and so the attempt is ended."""
        self.began = self.heard = time.monotonic()
        self.running = False
        self.bindings: List[Dict[str, Any]] = []
        self._place, self._cwd = node, ""
        self.on_change: Callable[[], None] = lambda: None
        self.on_line: Callable[[int, bytes], Dict[str, Any]] = lambda rank, line: {}
        self.on_launch: Callable[[int], None] = lambda pid: None
        self.on_last_result: Callable[[int], None] = lambda rank: None
        self.on_rank: Callable[[int, int], None] = lambda rank, pid: None

    def listen(self) -> None:
        """Listen for shims on an abstract socket: it leaves nothing behind, no path is too long."""
        self.socket_name = f"podwright-{self._order.run}-{self._node}-{os.getpid()}-{time.monotonic_ns()}"
        sock = open_socket(socket.AF_UNIX, "\0" + self.socket_name)
        self._listener = Listener(self._loop, "ranks", sock, lambda: self._order.ranks_per_node, self._greet)

    def start(self, go: Go, environ: Dict[str, str], cwd: str, launch: bool) -> None:
        """Start an attempt; `launch` is False on nodes whose ranks another node's mpirun starts."""
        self.ranks, self.failure, self.stack_of, self.running = {}, None, None, True
        self._cwd, self._place = cwd, go.place
        self.began = self.heard = time.monotonic()
        environ = {name: value for name, value in environ.items() if name not in OF_THE_PILOT}
        if self._order.launcher != "plain":
            environ.update(MASTER_ADDR=go.master_addr, MASTER_PORT=str(go.master_port))
        environ.update(
            PODWRIGHT_ATTEMPT=str(go.attempt),
            PODWRIGHT_SOCKETS=" ".join(go.sockets),
            PODWRIGHT_RANKS_PER_NODE=str(self._order.ranks_per_node),
        )
        if not launch:
            return
        for argv, extra in launch_lines(self._order, go):
            self._launch(argv, {**environ, **extra}, cwd)

    def _launch(self, argv: List[str], environ: Dict[str, str], cwd: str) -> None:
        try:
            self.on_launch(self._launchers.start(argv, environ, cwd))
        except LaunchFailed as failed:
            self.fail(RankFailure(None, 127, None, 0.0, str(failed), []))

    def _greet(self, link: socket.socket) -> Take:
        """Let in processes of this user only, as anybody may connect to an abstract socket."""
        _, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid != os.getuid() or not self.running:
            raise PermissionError("no rank of this attempt")
        return partial(self._welcome, link)

    def _welcome(self, link: socket.socket, line: bytes) -> None:
        """Take a shim in, not a second one of a number: two processes must not believe they are one rank."""
        number = int(json.loads(line)["rank"])
        first = self._place * self._order.ranks_per_node
        local = number - first
        if number in self.ranks or not 0 <= local < self._order.ranks_per_node or not self.running:
            link.close()
            return
        rank = RankProcess(number, local, link, self._log.rank(str(number)))
        binding = self._binding(local)
        try:
            self._hand_over(rank, pack(self._shim_order(number, local, binding)))
        except OSError:
            self._close_pipes(rank)
            rank.log.close()
            raise
        self.ranks[number] = rank
        for pipe in rank.pipes:
            self._loop.watch(pipe, partial(self._hear, rank, pipe))
        self._loop.watch(link, lambda: self._hear_shim(rank))

    def _shim_order(self, number: int, local: int, binding: Dict[str, Any]) -> Iterator[Tuple[str, object]]:
        """Yield the order for a rank, as its shim reads it."""
        yield "cwd", self._cwd
        yield "files", self._files
        yield from (("core", core) for core in binding.get("cores") or ())
        yield from (("env", f"{name}={value}") for name, value in rank_variables(self._order, number, binding).items())
        yield from (("unset", name) for name in hidden_names(self._order))
        if self._order.stdin and (self._order.launcher != "mpi" or number == 0):
            yield "stdin", self._order.stdin

    def _hand_over(self, rank: RankProcess, reply: bytes) -> None:
        """Give a shim its order and the ends of two pipes that its child writes to."""
        ends: List[int] = []
        try:
            for stream in "oe":
                read, write = os.pipe()
                os.set_blocking(read, False)
                rank.pipes[read] = stream
                ends.append(write)
            rank.link.sendmsg([reply], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", ends))])
        finally:
            for end in ends:
                os.close(end)

    def _binding(self, local: int) -> Dict[str, Any]:
        """Return where a local rank runs; nothing where ranks are not bound."""
        return self.bindings[local] if local < len(self.bindings) else {}

    def _hear(self, rank: RankProcess, pipe: int) -> bool:
        data = read_now(pipe)
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
            rank.note(self.on_line(rank.number, line))

    def _hear_shim(self, rank: RankProcess) -> None:
        try:
            data = rank.link.recv(MAX_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        rank.rest += data
        *lines, rank.rest = rank.rest.split(b"\n")
        for line in lines:
            self._take(rank, parse_line(line) or {})
        if not data or len(rank.rest) > MAX_READ_BYTES:
            self._loop.forget(rank.link)
            rank.link.close()
            # The shim was killed: its child dies with it.
            if rank.code is None:
                self._end(rank, EXIT_KILLED, "SIGKILL")

    def _take(self, rank: RankProcess, message: Dict[str, Any]) -> None:
        child, status = message.get("child"), message.get("status")
        if isinstance(child, int) and rank.child is None:
            rank.child = child
            binding = self._binding(rank.local)
            facts = {name: binding.get(name) for name in ("cores", "gpu", "numa", "nics")}
            self._say("rank", rank=rank.number, local_rank=rank.local, pid=rank.child, **facts)
            self.on_rank(rank.number, child)
            self.on_change()
        elif isinstance(status, int) and 0 <= status <= MAX_STATUS and rank.code is None:
            self._end(rank, *exit_facts(status))

    def _end(self, rank: RankProcess, code: int, name: Optional[str]) -> None:
        rank.code = code
        self._drain(rank)
        after_s = round(time.monotonic() - rank.began, 3)
        self._say("rank_end", rank=rank.number, code=code, signal=name, after_s=after_s)
        if rank.number == self.stack_of and rank.log.tail:
            self._say("stack", rank=rank.number, lines=_tail(rank.log))
        if code != 0:
            self.fail(RankFailure(rank.number, code, name, after_s, _how(code, name), _tail(rank.log)))
        self.on_change()

    def _drain(self, rank: RankProcess) -> None:
        """Read what is in the pipes; a daemon the rank left behind may hold them open and is not waited for."""
        for pipe in rank.pipes:
            while self._hear(rank, pipe):
                pass
        self._close_pipes(rank)
        self._results(rank, rank.log.end())
        self.on_last_result(rank.number)
        rank.log.close()

    def _close_pipes(self, rank: RankProcess) -> None:
        for pipe in rank.pipes:
            self._loop.forget(pipe)
            os.close(pipe)
        rank.pipes = {}

    def fail(self, failure: RankFailure) -> None:
        """Take note of why the attempt failed here; what comes after the first reason follows from it."""
        if self.failure is None:
            self.failure = failure
            self.on_change()

    def check(self) -> None:
        """Look at launchers that ended. A launcher that fails while its ranks are fine is a failure of its own."""
        for status, log in self._launchers.ended():
            for rank in list(self.ranks.values()):
                if rank.code is None:  # its last word may wait to be read, which came before its launcher's end
                    self._hear_shim(rank)
            code, name = exit_facts(status)
            after_s = round(time.monotonic() - self.began, 3)
            started, expected = len(self.ranks), self._order.ranks_per_node
            rank_failed = any(rank.code for rank in self.ranks.values())
            if code != 0 and not rank_failed:
                self.fail(RankFailure(None, code, name, after_s, f"the launcher {_how(code, name)}", _tail(log)))
            elif code == 0 and not self._launchers.pids and started < expected:
                reason = f"the launcher ended when {started} of {expected} ranks had started"
                self.fail(RankFailure(None, 1, None, after_s, reason, _tail(log)))
            self.on_change()

    @property
    def reported(self) -> int:
        """Return how many distinct ranks have started here."""
        return sum(1 for rank in self.ranks.values() if rank.child is not None)

    @property
    def idle(self) -> bool:
        return not self._launchers.pids and all(rank.code is not None for rank in self.ranks.values())

    @property
    def done(self) -> bool:
        """Return whether every rank of this node came and ended well."""
        all_came = len(self.ranks) == self._order.ranks_per_node
        return self.idle and all_came and all(rank.code == 0 for rank in self.ranks.values())

    def signal(self, number: int) -> None:
        """Signal the ranks alone: a launcher that got it too would end them before they can write a checkpoint."""
        for rank in self.ranks.values():
            if rank.child is not None and rank.code is None:
                send(rank.child, number)
        if number in (signal.SIGTERM, signal.SIGINT) and not self.ranks:
            for pid in self._launchers.pids:
                send(pid, number)

    def abort(self) -> None:
        """End the ranks so that Python prints where it was; what is no Python is asked to end as always."""
        for rank in self.ranks.values():
            if rank.child is None or rank.code is not None:
                continue
            rank.log.expect_stack()
            if not abort(rank.child):
                send(rank.child, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the whole tree beneath this pilot, until nothing of it is left."""
        kill_tree(os.getpid())

    def finish(self) -> None:
        """Close every log after an attempt; nothing of it runs any more."""
        self.running = False
        self._launchers.close()
        for rank in self.ranks.values():
            if rank.code is None:
                self._end(rank, EXIT_KILLED, "SIGKILL")
            self._loop.forget(rank.link)
            rank.link.close()


def _how(code: int, signal_name: Optional[str]) -> str:
    return f"was killed by {signal_name}" if signal_name else f"exited with {code}"


def _tail(log: RankLog) -> List[str]:
    return [line.decode("utf-8", "replace")[:500] for line in log.tail]
