"""The keeper of one run: on one machine it is what slurmd or a kubelet is on a cluster.

It starts the pilots of all nodes, starts a lost one again with a greater restart count, leaves no orphan, and writes
what it did. A file `cancelled` in the run's folder stops it.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..protocol import (
    EXIT_BAD_ORDER,
    EXIT_FAILED,
    EXIT_FENCED,
    EXIT_GIVEN_BACK,
    EXIT_NO_PYTHON,
    EXIT_STOPPED,
    KEY_KIND,
    KEY_TIME,
    record_name,
    rows_of,
)
from ..system.journal import CLOSE_S, MAX_WAITING_EVENTS, Clock, JsonLines
from ..system.loop import Loop
from ..system.paths import FolderWatch, scratch_of
from ..system.plain_files import open_to_add
from ..system.processes import exit_facts, kill_tree, send, start
from ..system.sealed import ORDER, PILOT, Program, path_of, seal
from .kept_run import STOPPED, KeptRun
from .slots import MachineShare

REPLACEMENTS = 10
"""Of one node of one run: more than any machine loses by chance, few enough to end a pilot that cannot start."""
LEAVE_S = 5.0
EXIT_NO_CONTAINER = 125
"""As podman and Docker say it."""
EXIT_NO_FOLDER = 73
"""As sysexits.h says that a file cannot be made."""
OUTCOMES: Dict[int, Tuple[str, str]] = {
    0: ("succeeded", ""),
    EXIT_FAILED: ("failed", ""),
    EXIT_STOPPED: ("terminated", "stopped"),
    EXIT_FENCED: ("failed", "another copy of this run was running"),
    EXIT_BAD_ORDER: ("failed", "its order cannot be read; see pilot.log"),
    EXIT_NO_PYTHON: ("failed", "no Python 3.8 or newer was found; see pilot.log"),
    EXIT_NO_FOLDER: ("failed", "the folders that its container writes to cannot be made; see pilot.log"),
    EXIT_NO_CONTAINER: ("failed", "its container could not be started; see pilot.log"),
}
"""What the end of node 0 says of the run, should its own last word be lost. Any other end is a lost node."""


class Pilot:
    """The process that now stands for one node."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.restart = -1
        self.pid: Optional[int] = None
        self.shipper: Optional[int] = None
        self.code: Optional[int] = None
        """How the node ended for good."""
        self.start_at = 0.0

    @property
    def is_waiting(self) -> bool:
        """Return whether the node has no process now and will get one."""
        return self.pid is None and self.code is None


class KeeperContext(NamedTuple):
    """What all keepers of one process share; `pids` are those of every process that stands for a node now."""

    program: Program
    loop: Loop
    clock: Clock
    pids: Set[int]


class Keeper:
    """Starts the pilots of one run, replaces those that are lost, and leaves nothing behind."""

    def __init__(self, run: KeptRun, share: MachineShare, context: KeeperContext) -> None:
        self._run, self._order, self._share = run, run.order, share
        self._context, self._loop = context, context.loop
        self._sealed_order = seal(run.order_data, "order.json")
        self._lines = JsonLines(os.path.join(run.folder, "engine.jsonl"), MAX_WAITING_EVENTS)
        self._folder_watch = FolderWatch(run.folder, self._order.gone_s)
        self._pilots = [Pilot(node) for node in range(self._order.allocated)]
        self._given_back = 0
        self._leave_by: Optional[float] = None
        self._verdict: Optional[Dict[str, Any]] = None
        self._job = f"{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"
        self.say("kept", pid=os.getpid(), job=self._job, place=share.number)
        self._start_due()

    def say(self, kind: str, **fields: Any) -> None:
        self._lines.write({KEY_TIME: round(self._context.clock.now(), 3), KEY_KIND: kind, **fields})

    def look(self) -> bool:
        """Look after the run; return whether it is over, and nothing of it is left."""
        if self._verdict is None and (self._run.is_cancelled or self._folder_watch.is_gone()):
            self.stop(signal.SIGTERM)
        self._look_at_pilots()
        self._start_due()
        if not self._is_over():
            return False
        kill_tree(os.getpid(), spare=self._context.pids)
        self.say("end", **(self._verdict or {}))
        self._lines.close(CLOSE_S)
        os.close(self._sealed_order)
        self._run.let_go()
        return True

    def patience(self) -> float:
        """Return how long nobody needs to look, if nothing happens."""
        waiting = [pilot for pilot in self._pilots if pilot.is_waiting]
        waits = [pilot.start_at - time.monotonic() for pilot in waiting]
        return max(0.01, min([0.5, *waits]))

    def _start_due(self) -> None:
        for pilot in self._pilots:
            if pilot.is_waiting and time.monotonic() >= pilot.start_at:
                self._start(pilot)

    def _start(self, pilot: Pilot) -> None:
        pilot.restart += 1
        order = self._order
        # Several nodes on one machine have names of their own.
        host = f"node{pilot.node + 1}" if order.allocated > 1 else socket.gethostname()
        environ = {
            **os.environ,
            "PODWRIGHT_RUN": order.run,
            "PODWRIGHT_NODE": str(pilot.node),
            "PODWRIGHT_RESTART": str(pilot.restart),
            "PODWRIGHT_JOB": self._job,
            "PODWRIGHT_HOST": host,
            "PODWRIGHT_LEADER": order.bind,
            "PODWRIGHT_TOKEN_FILE": os.path.join(self._run.folder, "token"),
            PILOT: path_of(self._context.program.pilot),
            ORDER: path_of(self._sealed_order),
        }
        gpus = self._share.gpus_of_node(pilot.node, order.allocated)
        if gpus is not None:
            environ["CUDA_VISIBLE_DEVICES"] = gpus
        stub = self._context.program.stub_line(self._run.order_file)
        pilot.pid = self._spawn(stub, environ, "pilot.log", subprocess.STDOUT)
        if not order.shared:
            ship = self._context.program.role_line("ship", self._run.order_file)
            with suppress(OSError):
                os.makedirs(os.path.join(self._run.folder, "frames"), mode=0o700, exist_ok=True)
            log = f"frames/{record_name(pilot.node, pilot.restart)}.log"
            pilot.shipper = self._spawn(ship, environ, log, subprocess.DEVNULL)
        self.say("node", node=pilot.node, restart=pilot.restart, pid=pilot.pid)

    def _spawn(self, argv: List[str], environ: Dict[str, str], log: str, errors: int) -> int:
        file = self._open_log(log)
        with _bound_to(self._share.cpus):
            descriptors = (self._context.program.pilot, self._sealed_order)
            pid = start(argv, env=environ, stdout=file, stderr=errors, pass_fds=descriptors)
        os.close(file)
        self._context.pids.add(pid)
        return pid

    def _open_log(self, name: str) -> int:
        """Open a log in the run's folder, which may be gone by now, or hold something else under that name."""
        try:
            return open_to_add(os.path.join(self._run.folder, name))
        except OSError:
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def _look_at_pilots(self) -> None:
        for pilot in self._pilots:
            if pilot.pid is not None and pilot.pid in self._loop.ended:
                self._ended(pilot, self._loop.ended.pop(pilot.pid))
        leader = self._pilots[0]
        if leader.code is not None and self._leave_by is None:
            self._leave_by = time.monotonic() + LEAVE_S
        if self._leave_by is not None and time.monotonic() > self._leave_by:
            for pilot in self._pilots[1:]:
                if pilot.pid is not None:
                    send(pilot.pid, signal.SIGKILL)

    def _ended(self, pilot: Pilot, status: int) -> None:
        code, name = exit_facts(status)
        pid, pilot.pid = pilot.pid, None
        self._context.pids.discard(pid or 0)
        self.say("node_end", node=pilot.node, restart=pilot.restart, code=code, signal=name)
        self._end_shipper(pilot, code in OUTCOMES)
        # What the dead pilot left behind has no parent but this process.
        kill_tree(os.getpid(), spare=self._context.pids)
        if self._leave_by is not None or self._verdict is not None:
            pilot.code = code
        elif code == EXIT_GIVEN_BACK:
            self._give_back(pilot)
        elif code in OUTCOMES:
            pilot.code = code
        else:
            self._replace(pilot, f"killed by {name}" if name else f"exit code {code}, process {pid}")

    def _record(self, pilot: Pilot) -> str:
        base = self._run.folder if self._order.shared else scratch_of(self._run.job, self._order.scratch, pilot.node)
        return os.path.join(base, "record", record_name(pilot.node, pilot.restart))

    def _last_words(self, pilot: Pilot) -> str:
        rows = rows_of(os.path.join(self._record(pilot), "events.jsonl"))
        reasons = [str(row.get("why")) for row in rows if row.get(KEY_KIND) == "given_back"]
        return (reasons or [""])[-1]

    def _end_shipper(self, pilot: Pilot, by_will: bool) -> None:
        """Wait for the shipper, which ends by itself once all is sent; a dead pilot's must send the rest now."""
        if pilot.shipper is None:
            return
        if not by_will:
            send(pilot.shipper, signal.SIGTERM)
        deadline = time.monotonic() + LEAVE_S
        while pilot.shipper not in self._loop.ended and time.monotonic() < deadline:
            # No turn of the loop: a signal that comes now is for all runs.
            self._loop.reap()
            time.sleep(0.02)
        self._loop.ended.pop(pilot.shipper, None)
        self._context.pids.discard(pilot.shipper)
        pilot.shipper = None

    def _replace(self, pilot: Pilot, reason: str) -> None:
        if pilot.restart >= REPLACEMENTS:
            self._give_up(f"the pilot of node {pilot.node} ended {pilot.restart + 1} times: {reason}; see pilot.log")
            pilot.code = EXIT_FAILED
            return
        pilot.start_at = time.monotonic() + min(0.05 * 2**pilot.restart, 5.0)

    def _give_back(self, pilot: Pilot) -> None:
        """Start a node again after a jittered wait, since not all were there in time, as often as there are retries."""
        if pilot.node == 0:
            self._given_back += 1
        if self._given_back > self._order.retries:
            self._give_up(self._last_words(pilot) or "the nodes did not join each other in time")
            pilot.code = EXIT_GIVEN_BACK
        else:
            pilot.start_at = time.monotonic() + random.uniform(0.2, 1.0) * 2 ** min(self._given_back, 5)

    def _give_up(self, reason: str) -> None:
        self._verdict = {"state": "failed", "reason": reason, "code": None}
        self._leave_by = time.monotonic() + LEAVE_S
        for pilot in self._pilots:
            if pilot.pid is not None:
                send(pilot.pid, signal.SIGTERM)
            elif pilot.code is None:
                pilot.code = EXIT_FAILED

    def stop(self, number: int) -> None:
        self._verdict = STOPPED
        for pilot in self._pilots:
            if pilot.pid is not None:
                send(pilot.pid, number)
            elif pilot.code is None:
                pilot.code = EXIT_STOPPED

    def _is_over(self) -> bool:
        over = all(pilot.pid is None and pilot.code is not None for pilot in self._pilots)
        if over and self._verdict is None:
            code = self._pilots[0].code or 0
            state, reason = OUTCOMES.get(code, ("failed", ""))
            self._verdict = {"state": state, "reason": reason, "code": code}
        return over


@contextmanager
def _bound_to(cpus: List[int]) -> Iterator[None]:
    """Let what is started meanwhile have these CPUs: a child has those of its parent from its first moment on."""
    own = os.sched_getaffinity(0)
    with suppress(OSError):  # a CPU may have gone since
        os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, own)
