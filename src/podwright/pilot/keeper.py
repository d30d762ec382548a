"""The keep role: on one machine it is what slurmd or a kubelet is on a cluster.

It starts the pilots of all nodes, starts a lost one anew with a greater restart count, leaves no orphan, and writes
what it did. It is detached from the client that started it and holds a lock as long as it lives: that is how anyone
can tell whether a local run still has somebody who cares for it. A file `cancelled` in the run's folder stops it.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional, Set, Tuple

from .journal import CLOSE_S, KEPT_EVENTS, Clock, JsonLines
from .loop import Loop
from .paths import FolderWatch, scratch_of
from .plain import open_to_add, open_to_read
from .processes import adopt_orphans, exit_facts, kill_tree, send
from .protocol import (
    EXIT_BAD_ORDER,
    EXIT_FAILED,
    EXIT_FENCED,
    EXIT_GIVEN_BACK,
    EXIT_NO_PYTHON,
    EXIT_STOPPED,
    KEY_KIND,
    KEY_TIME,
    Order,
    parse_order,
    record_folders,
    record_name,
    rows_of,
)
from .sealed import ORDER, PILOT, Program, path_of, read_whole, seal

REPLACEMENTS = 10
"""Of one node of one run: more than any machine loses by chance, few enough to end a pilot that cannot start."""
LEAVE_S = 5.0
EXIT_NO_CONTAINER = 125
"""As podman and Docker say it."""
EXIT_NO_FOLDER = 73
"""As sysexits.h says that a file cannot be made."""
STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
STOPPED: Dict[str, Any] = {"state": "terminated", "reason": "stopped", "code": EXIT_STOPPED}
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


class Kept:
    """One run: its order, its folder and the lock that says it is cared for."""

    def __init__(self, order_file: str) -> None:
        self.order_file = os.path.abspath(order_file)
        self.job = os.path.dirname(self.order_file)
        self.order_data = read_whole(self.order_file)
        self.order: Order = parse_order(self.order_data, self.order_file)
        self.folder = os.path.normpath(os.path.join(self.job, self.order.folder))
        self.lock = os.open(os.path.join(self.folder, "keeper.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        """Take the lock; return False when another keeper has it."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, f"{os.getpid()}\n".encode(), 0)
        return True

    @property
    def is_cancelled(self) -> bool:
        return os.path.exists(os.path.join(self.folder, "cancelled"))

    def end(self, now: float, verdict: Dict[str, Any]) -> None:
        """Write the end of a run that never started."""
        lines = JsonLines(os.path.join(self.folder, "engine.jsonl"), KEPT_EVENTS)
        lines.write({KEY_TIME: round(now, 3), KEY_KIND: "end", **verdict})
        lines.close(CLOSE_S)

    def is_over(self) -> bool:
        rows = rows_of(os.path.join(self.folder, "engine.jsonl"))
        return any(row.get(KEY_KIND) == "end" for row in rows)


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


class Keeper:
    """Starts the pilots of one run, replaces those that are lost, and leaves nothing behind."""

    def __init__(self, kept: Kept, program: Program, loop: Loop, clock: Clock) -> None:
        self._kept, self._order, self._loop = kept, kept.order, loop
        self._program, self._sealed_order = program, seal(kept.order_data, "order.json")
        self._lines = JsonLines(os.path.join(kept.folder, "engine.jsonl"), KEPT_EVENTS)
        self._now = clock.now
        self._folder_watch = FolderWatch(kept.folder, self._order.gone_s)
        self._pilots = [Pilot(node) for node in range(self._order.nodes)]
        self._given_back = 0
        self._leave_by: Optional[float] = None
        self._verdict: Optional[Dict[str, Any]] = None
        self._job = f"{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"

    def say(self, kind: str, **fields: Any) -> None:
        self._lines.write({KEY_TIME: round(self._now(), 3), KEY_KIND: kind, **fields})

    def run(self) -> bool:
        """Keep the run to its end; return whether it was stopped from outside."""
        self.say("kept", pid=os.getpid(), job=self._job)
        stopped = False
        while not self._is_over():
            self._start_due()
            for number in self._loop.turn(self._patience()) & STOPPING:
                stopped = True
                self._stop(number)
            if self._verdict is None and (self._kept.is_cancelled or self._folder_watch.is_gone()):
                self._stop(signal.SIGTERM)
            self._look()
        kill_tree(os.getpid())
        self.say("end", **(self._verdict or {}))
        self._lines.close(CLOSE_S)
        os.close(self._sealed_order)
        return stopped

    def _patience(self) -> float:
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
        host = f"node{pilot.node + 1}" if order.nodes > 1 else socket.gethostname()
        environ = {
            **os.environ,
            "PODWRIGHT_RUN": order.run,
            "PODWRIGHT_NODE": str(pilot.node),
            "PODWRIGHT_RESTART": str(pilot.restart),
            "PODWRIGHT_JOB": self._job,
            "PODWRIGHT_HOST": host,
            "PODWRIGHT_LEADER": order.bind,
            "PODWRIGHT_TOKEN_FILE": os.path.join(self._kept.folder, "token"),
            PILOT: path_of(self._program.pilot),
            ORDER: path_of(self._sealed_order),
        }
        stub = self._program.stub_line(self._kept.order_file)
        pilot.pid = self._spawn(stub, environ, "pilot.log", subprocess.STDOUT)
        if not order.shared:
            ship = self._program.role_line("ship", self._kept.order_file)
            with suppress(OSError):
                os.makedirs(os.path.join(self._kept.folder, "frames"), mode=0o700, exist_ok=True)
            log = f"frames/{record_name(pilot.node, pilot.restart)}.log"
            pilot.shipper = self._spawn(ship, environ, log, subprocess.DEVNULL)
        self.say("node", node=pilot.node, restart=pilot.restart, pid=pilot.pid)

    def _spawn(self, argv: List[str], environ: Dict[str, str], log: str, errors: int) -> int:
        file = self._open_log(log)
        child = subprocess.Popen(
            argv,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=errors,
            start_new_session=True,
            pass_fds=(self._program.pilot, self._sealed_order),
        )
        os.close(file)
        # Reaped by the loop, never by subprocess.
        child.returncode = 0
        return child.pid

    def _open_log(self, name: str) -> int:
        """Open a log in the run's folder, which may be gone by now, or hold something else under that name."""
        try:
            return open_to_add(os.path.join(self._kept.folder, name))
        except OSError:
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def _look(self) -> None:
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
        self.say("node_end", node=pilot.node, restart=pilot.restart, code=code, signal=name)
        self._end_shipper(pilot, code in OUTCOMES)
        # What the dead pilot left behind has no parent but this process.
        kill_tree(os.getpid(), spare=self._processes())
        if self._leave_by is not None or self._verdict is not None:
            pilot.code = code
        elif code == EXIT_GIVEN_BACK:
            self._give_back(pilot)
        elif code in OUTCOMES:
            pilot.code = code
        else:
            self._replace(pilot, f"killed by {name}" if name else f"exit code {code}, process {pid}")

    def _processes(self) -> Set[int]:
        """Return every process that stands for a node now."""
        pilots = {pilot.pid for pilot in self._pilots if pilot.pid}
        return pilots | {pilot.shipper for pilot in self._pilots if pilot.shipper}

    def _record(self, pilot: Pilot) -> str:
        base = self._kept.folder if self._order.shared else scratch_of(self._kept.job, self._order.scratch, pilot.node)
        return os.path.join(base, "record", record_name(pilot.node, pilot.restart))

    def _last_words(self, pilot: Pilot) -> str:
        rows = rows_of(os.path.join(self._record(pilot), "events.jsonl"))
        reasons = [str(row.get("why")) for row in rows if row.get(KEY_KIND) == "given_back"]
        return (reasons or [""])[-1]

    def _end_shipper(self, pilot: Pilot, by_will: bool) -> None:
        """Wait for the shipper, which ends by itself once all is sent; a dead pilot's is told to send the rest now."""
        if pilot.shipper is None:
            return
        if not by_will:
            send(pilot.shipper, signal.SIGTERM)
        deadline = time.monotonic() + LEAVE_S
        while pilot.shipper not in self._loop.ended and time.monotonic() < deadline:
            self._loop.turn(0.1)
        self._loop.ended.pop(pilot.shipper, None)
        pilot.shipper = None

    def _replace(self, pilot: Pilot, why: str) -> None:
        if pilot.restart >= REPLACEMENTS:
            self._give_up(f"the pilot of node {pilot.node} ended {pilot.restart + 1} times: {why}; see pilot.log")
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

    def _stop(self, number: int) -> None:
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


def main(argv: List[str]) -> int:
    """Keep the runs of the orders one after the other, after the run in the folder that `--after` names."""
    after, order_files = "", argv
    if argv[0] == "--after":
        after, order_files = argv[1], argv[2:]
    runs = [Kept(path) for path in order_files]
    runs = [run for run in runs if run.take() and not run.is_over()]
    loop, clock = Loop(), Clock()
    # Read before anything of these runs can write there.
    program = Program(os.path.dirname(os.path.abspath(sys.argv[0])))
    loop.catch_signals()
    adopt_orphans()
    # The client that started us waits for this line and no longer.
    print("kept", flush=True)
    _detach_output()
    verdict = wait_for(after, runs, loop) if after and runs else None
    for run in runs:
        if verdict is not None or run.is_cancelled:
            run.end(clock.now(), verdict or STOPPED)
        elif Keeper(run, program, loop, clock).run():
            verdict = STOPPED
    return 0


def parts_of(folder: str) -> List[str]:
    """Return the folders of a run's points, or its own when it has none."""
    try:
        with open_to_read(os.path.join(folder, "run.json")) as file:
            count = int(json.load(file).get("points", 0))
    except (OSError, ValueError):
        count = 0
    return [f"{os.path.normpath(folder)}-{point + 1}" for point in range(count)] or [folder]


def succeeded(folder: str) -> Optional[bool]:
    """Return whether the run in `folder` succeeded; None while it is not over. Keeper, pilots or a client tell."""
    files = [os.path.join(folder, "engine.jsonl")]
    for node, _, path in record_folders(os.path.join(folder, "record")):
        if node == 0:
            files.append(os.path.join(path, "events.jsonl"))
    files.append(os.path.join(folder, "client.jsonl"))
    for path in files:
        for row in rows_of(path):
            if row.get(KEY_KIND) in ("end", "lost"):
                return row.get("state") == "succeeded"
    return None


def wait_for(folder: str, waiting: List[Kept], loop: Loop) -> Optional[Dict[str, Any]]:
    """Wait until the run in `folder` is over; return None when it succeeded, else what becomes of the runs after it."""
    name = os.path.basename(os.path.normpath(folder))
    failed = {"state": "failed", "reason": f"{name}, which it comes after, did not succeed", "code": None}
    while True:
        ends = [succeeded(part) for part in parts_of(folder)]
        if all(ends):
            return None
        if None not in ends:
            return failed
        if loop.turn(0.5) & STOPPING or all(run.is_cancelled for run in waiting):
            return STOPPED


def _detach_output() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
