"""The node role: one process per node of a run, from joining the others to the last event."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import Any, Dict, List, Optional, Tuple

from . import __version__, sensors, topology
from .journal import KEPT_SAMPLES, Clock, Journal, JsonLines
from .leader import EXITS
from .lease import Leases
from .logs import Masker, NodeLog
from .loop import Loop
from .place import NodePlace, find_place
from .processes import adopt_orphans, signal_name
from .protocol import (
    EXIT_BAD_ORDER,
    EXIT_FENCED,
    KEY_EPOCH,
    KEY_KIND,
    KEY_NODE,
    KEY_TIME,
    KEY_VALUES,
    Epoch,
    Order,
    read_order,
    record_name,
)
from .ranks import Go, RankFailure, RankProcess, Ranks
from .roles import Role, role_of
from .setup import SetupFailed, rank_environment, run_setup, unpack

TURN_S, BUSY_TURN_S = 0.5, 0.05
STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Paths:
    """Where things are on this node, from the order's relative paths."""

    def __init__(self, order: Order, order_file: str, place: NodePlace) -> None:
        here = os.path.dirname(os.path.abspath(order_file))
        self.job = here
        self.folder = os.path.normpath(os.path.join(here, order.folder))
        if order.scratch:
            self.scratch = os.path.join(os.path.normpath(os.path.join(here, order.scratch)), f"n{place.node}")
        else:  # an old copy that ends late must not take the new one's folder with it
            self.scratch = os.path.join(own_scratch(order.run), record_name(place.node, place.restart))
        self.removed = self.scratch if not order.scratch else None
        self.yield_mark = os.path.join(self.folder, f"yield.{place.restart}")
        self.cancel_mark = os.path.join(self.folder, "cancelled")
        base = self.folder if order.shared else self.scratch
        self.record = os.path.join(base, "record", record_name(place.node, place.restart))
        self.lease = os.path.join(self.folder, "lease") if order.shared else None
        self.checkpoint = os.path.normpath(os.path.join(base, order.checkpoint))
        self.code = os.path.join(self.scratch, f"code-{order.code['sha256'][:12]}") if order.code else self.scratch

    def make(self) -> None:
        for path in (self.record, self.scratch, self.checkpoint):
            os.makedirs(path, mode=0o700, exist_ok=True)

    def clear(self) -> None:
        """A node's own scratch folder goes with the run; the folders above it once they are empty."""
        if self.removed is None:
            return
        shutil.rmtree(self.removed, ignore_errors=True)
        with suppress(OSError):
            os.rmdir(os.path.dirname(self.removed))
            os.rmdir(os.path.dirname(os.path.dirname(self.removed)))


def own_scratch(run: str) -> str:
    """In the node's temporary folder, under a name of this user's that nobody else can have taken."""
    home = os.path.join(tempfile.gettempdir(), f"podwright-{os.getuid()}")
    os.makedirs(home, mode=0o700, exist_ok=True)
    facts = os.lstat(home)
    if facts.st_uid != os.getuid() or not stat.S_ISDIR(facts.st_mode) or facts.st_mode & 0o022:
        home = tempfile.mkdtemp(prefix="podwright-")
    return os.path.join(home, run)


def fill_checkpoint(order: Order, path: str) -> Order:
    """The one placeholder that only the node can fill: where its checkpoint folder is."""
    command = [word.replace("{checkpoint}", path) for word in order.command]
    env = {name: text.replace("{checkpoint}", path) for name, text in order.env.items()}
    return replace(order, command=command, env=env)


class Node:
    def __init__(self, order: Order, order_file: str, place: NodePlace, token: bytes) -> None:
        self.paths = Paths(order, order_file, place)
        self.order, self.place, self.token = fill_checkpoint(order, self.paths.checkpoint), place, token
        self.loop = Loop()
        self.instance = uuid.uuid4().hex
        self.exit_code: Optional[int] = None
        self.epoch: Optional[Epoch] = None
        self._counters: Dict[str, Any] = {}
        self._stop_at: Optional[float] = None
        self._stopping = False
        self._broken: Optional[RankFailure] = None
        self._environ: Dict[str, str] = {}
        self._cpu: Dict[int, Tuple[float, float]] = {}
        self._told: Dict[str, Any] = {}
        self.signalled: Optional[str] = None
        self._ready_sent = 0

    # the life of a node

    def run(self) -> int:
        self.paths.make()
        clock = Clock()
        self.journal = Journal(os.path.join(self.paths.record, "events.jsonl"), self.place.node, clock)
        self.say = self.journal.say
        self.journal.epoch = (self.place.restart, 0)
        secrets = [os.environ[name] for name in self.order.secrets if name in os.environ]
        self.log = NodeLog(self.paths.record, self.order.log_bytes, Masker(secrets), clock.now)
        self.loop.catch_signals()
        adopt_orphans()
        self._start_sampling(clock)
        self.ranks = Ranks(self.order, self.place.node, self.loop, self.log, self.say)
        self.ranks.on_change, self.ranks.on_result = self._on_change, self._on_result
        self.ranks.on_rank = self.sampler.watch_rank
        self._prepare()
        self.ranks.listen()
        self.leases = Leases(self.paths.lease, self.place.job, self.place.copy)
        role = role_of(self)
        self.loop.every("beat", self.order.beat_s, lambda: self._beat(role))
        try:
            role.tick()  # a node that need not wait for others does not wait for the first turn either
            while self.exit_code is None:
                self._turn(role)
        finally:
            self._close(role)
        return self.exit_code

    def _turn(self, role: Role) -> None:
        for number in self.loop.turn(TURN_S if self.ranks.running and not self._stopping else BUSY_TURN_S):
            self._on_signal(number, role)
        self.ranks.check()
        self._finish_stop(role)
        role.tick()

    def _close(self, role: Role) -> None:
        self.ranks.kill()
        self.ranks.finish()
        role.close()
        self._sampling.set()
        self._sampling_thread.join(timeout=2.0)
        if self.log.lost_bytes:
            text = "log lines found no room on disk"
            self.say("seen", what="log", device="disk", value=self.log.lost_bytes, text=text)
        self.log.close()
        self.paths.clear()
        self.journal.close()
        with suppress(OSError):  # tells the shipper that all is written
            os.close(os.open(os.path.join(self.paths.record, "closed"), os.O_WRONLY | os.O_CREAT, 0o600))

    def _start_sampling(self, clock: Clock) -> None:
        """Sensors have their own thread: a driver that hangs must not hold the ranks or the heartbeat up."""
        self.sampler = sensors.Sampler(self.say, self.order.sample_s)
        self._sampling = threading.Event()
        self.sampler.open()
        metrics = JsonLines(os.path.join(self.paths.record, "metrics.jsonl"), KEPT_SAMPLES)
        facts = self.sampler.describe()
        facts["version"], facts["python"] = __version__, ".".join(map(str, sys.version_info[:3]))
        self._gpus = facts.get("gpus") or []
        self.say("pilot", host=self.place.host, pid=os.getpid(), restart=self.place.restart, **facts)
        if self.order.rdma:
            self.say("rdma", **topology.rdma_report())

        def write(values: Dict[str, float]) -> None:
            if self.order.virtual:
                values = own_share(values, facts["cpus"])
            if values:
                row = {
                    KEY_TIME: round(clock.now(), 3),
                    KEY_NODE: self.place.node,
                    KEY_EPOCH: list(self.journal.epoch),
                    KEY_VALUES: values,
                }
                metrics.write(row)

        def sample() -> None:
            due = time.monotonic()
            while not self._sampling.wait(max(due - time.monotonic(), 0.0)):
                write(self.sampler.sample(time.monotonic()))
                due = max(due + self.order.sample_s, time.monotonic())
            write(self.sampler.final())
            self.sampler.close()
            metrics.close()

        self._sampling_thread = threading.Thread(target=sample, daemon=True)
        self._sampling_thread.start()

    def _prepare(self) -> None:
        """Stage code and environment before joining, so that the others wait for a node that is ready to go."""
        began = time.monotonic()
        paths = {"folder": self.paths.folder, "scratch": self.paths.scratch, "checkpoint": self.paths.checkpoint}
        try:
            if self.order.code:
                tar = os.path.join(self.paths.job, self.order.code["file"])
                size = unpack(tar, self.order.code["sha256"], self.paths.code)
                self.say("staged", what="code", bytes=size, took_s=round(time.monotonic() - began, 3))
            environ = rank_environment(self.order, os.environ, paths)
            self._environ = run_setup(self.order.setup, environ, self.paths.code, self._interrupted)
        except (SetupFailed, OSError) as error:
            lines = error.tail if isinstance(error, SetupFailed) else []
            tail = [self.log.mask(line.encode()).decode() for line in lines]
            self._broken = RankFailure(None, 1, None, round(time.monotonic() - began, 3), str(error), tail)
        try:
            count, rdma = self.order.ranks_per_node, self.order.rdma
            self.ranks.places = topology.places(self.order.hardware, self._gpus, count, rdma)
        except Exception as error:  # binding is a gain, never a condition
            self.say("sensor", name="binding", error=str(error))

    def _interrupted(self) -> bool:
        for number in self.loop.signals():
            self.signalled = signal_name(number) if number in STOPPING else self.signalled
        return self.signalled is not None

    # what the leader tells

    def facts(self) -> Dict[str, Any]:
        """What a node says of itself when it joins; the counters let a new leader go on where the old one was."""
        own = {"node": self.place.node, "host": self.place.host, "restart": self.place.restart}
        state = {"instance": self.instance, "socket": self.ranks.socket_name, "idle": not self.ranks.running}
        return {**own, **state, "epoch": self.epoch, **self._counters}

    def take(self, message: Dict[str, Any]) -> None:
        handler = {"go": self._on_go, "stop": self._on_stop, "end": self._on_end}.get(str(message.get(KEY_KIND)))
        if handler:
            handler(message)

    def _on_go(self, message: Dict[str, Any]) -> None:
        self.epoch = self.journal.epoch = (int(message["epoch"][0]), int(message["epoch"][1]))
        self._counters = {name: message[name] for name in ("spent", "attempt", "began")}
        self._told, self._stopping, self._ready_sent = {}, False, 0
        if self._broken is not None:
            self._report_failure(self._broken, fatal=True)
            return
        go = Go(message["attempt"], message["master_addr"], message["master_port"], message["sockets"])
        launch = self.order.launcher != "mpi" or self.place.node == 0
        self.ranks.start(go, self._environ, self.paths.code, launch)

    def _on_stop(self, message: Dict[str, Any]) -> None:
        if not self._stopping:
            self._stopping = True
            self._stop_at = time.monotonic() + float(message["grace_s"])
            self.ranks.signal(signal.SIGTERM)

    def _finish_stop(self, role: Role) -> None:
        """After the grace period, or as soon as the ranks are gone, whatever is left of the tree is killed."""
        if not self._stopping:
            return
        assert self._stop_at is not None
        if self.ranks.idle or time.monotonic() >= self._stop_at:
            self.end_ranks()
            role.tell({KEY_KIND: "stopped"})

    def end_ranks(self) -> None:
        self._stopping = False
        self.ranks.kill()
        self.loop.reap()
        self.ranks.finish()
        self._told = {}
        self.sampler.forget_ranks()

    def _on_end(self, message: Dict[str, Any]) -> None:
        """Where all nodes are one job, the leader's exit code tells how it ended; another's could end it too early."""
        told_by_leader = bool(self.place.copy) and self.place.node > 0
        self.exit_code = 0 if told_by_leader else EXITS[str(message["state"])]

    # what the ranks tell

    def _on_change(self) -> None:
        self._told["changed"] = True

    def _on_result(self, rank: int, values: Dict[str, Any]) -> None:
        self.say("result", rank=rank, values=values)
        goal = self.order.goal
        if goal and goal["metric"] in values:
            value, best = values[goal["metric"]], max if goal.get("at_least") is not None else min
            self._told["value"] = best(value, self._told.get("value", value))

    def report_ranks(self, role: Role) -> None:
        """Tell the leader what changed since the last turn; once each."""
        if "value" in self._told:
            role.tell({KEY_KIND: "value", "value": self._told.pop("value")})
        if not self._told.pop("changed", False):
            return
        if self.ranks.reported > self._ready_sent:
            self._ready_sent = self.ranks.reported
            role.tell({KEY_KIND: "ready", "ranks": self._ready_sent})
        if self.ranks.failure is not None and "failed" not in self._told and not self._stopping:
            self._report_failure(self.ranks.failure)
        if self.ranks.running and self.ranks.done and not self._stopping:
            self.end_ranks()
            role.tell({KEY_KIND: "done"})
        elif self._told.get("failed"):
            role.tell({KEY_KIND: "failed", **self._told["failed"]})
            self._told["failed"] = {}

    def say_again(self) -> None:
        """After a broken connection: what was told last may not have arrived."""
        self._ready_sent = 0
        self._told["changed"] = True
        if self._told.get("failed") == {}:
            del self._told["failed"]

    def _report_failure(self, failure: RankFailure, fatal: bool = False) -> None:
        """A fatal one would come again in every attempt, so no retry is spent on it."""
        self._told["failed"] = {**failure._asdict(), "fatal": fatal}
        self._told["changed"] = True

    # signals and time

    def _on_signal(self, number: int, role: Role) -> None:
        self.say("signal", name=signal_name(number))
        if number in STOPPING:
            self.signalled = signal_name(number)
        else:
            self.ranks.signal(number)

    def _beat(self, role: Role) -> None:
        role.beat()
        newer = self.leases.newer_than(self.epoch, own_too=self.place.node == 0) if self.epoch else None
        if newer:
            self.say("fenced", by=list(newer.epoch), job=newer.job)
            self.end_ranks()
            self.exit_code = EXIT_FENCED

    def pulse(self) -> Dict[str, Any]:
        """The heartbeat's facts; per-rank ones only where a hang is looked for."""
        now = time.monotonic()
        if not self.ranks.running or self.order.hang_after_s is None:
            return {KEY_KIND: "beat", "silent_s": 0.0}
        rows = {str(number): self._vital(rank, now) for number, rank in self.ranks.ranks.items() if rank.code is None}
        return {KEY_KIND: "beat", "silent_s": round(now - self.ranks.heard, 2), "ranks": rows}

    def _vital(self, rank: RankProcess, now: float) -> List[Any]:
        cpu_s, state = _process(rank.child) if rank.child else (0.0, "?")
        then, before = self._cpu.get(rank.number, (now - 1.0, cpu_s))
        self._cpu[rank.number] = (now, cpu_s)
        share = max(cpu_s - before, 0.0) / max(now - then, 0.001)
        return [round(now - rank.heard, 2), round(share, 3), state, rank.step]


def own_share(values: Dict[str, float], cpus: int) -> Dict[str, float]:
    """Several nodes on one machine: what one of them uses is what its ranks use, not what the machine does."""
    shares = {"cpu_percent": ("cpu_percent", 1.0 / cpus), "memory_used_bytes": ("memory_bytes", 1.0)}
    own = dict(values)
    for name, (of_rank, factor) in shares.items():
        parts = [value for key, value in values.items() if key.startswith("rank.") and key.endswith("." + of_rank)]
        if name in own:
            own[name] = round(sum(parts) * factor, 3)
    return own


def _process(pid: int) -> Tuple[float, str]:
    """(CPU seconds, state letter) of one process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0].decode()
    except (OSError, IndexError, ValueError):
        return 0.0, "?"


def main(order_file: str) -> int:
    """Exit codes: 0 succeeded, 64 no valid order, 75 given back, 76 fenced, 77 failed, 143 stopped."""
    try:
        order = read_order(order_file)
        with open(
            os.environ.get("PODWRIGHT_TOKEN_FILE") or os.path.join(os.path.dirname(order_file), "..", "token"), "rb"
        ) as file:
            token = file.read().strip()
    except (OSError, ValueError, TypeError) as error:
        print(f"podwright: {error}", file=sys.stderr)
        return EXIT_BAD_ORDER
    return Node(order, order_file, find_place(os.environ, None), token).run()
