"""The node role: one process per node of a run, from joining the others to the last event."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Dict, List, Optional, Protocol

from .. import __version__
from ..data.node_data import NodeData, fill_placeholders
from ..masking import Masker
from ..protocol import CLOSED, EXIT_FENCED, EXITS, KEY_KIND, SLOW_IN_A_ROW, Epoch, Order
from ..ranks import topology
from ..ranks.guesses import Recogniser
from ..ranks.launchers import Go
from ..ranks.logs import NodeLog
from ..ranks.memory_limit import RankMemory
from ..ranks.node_ranks import RankFailure, Ranks
from ..ranks.pulses import Pulses
from ..ranks.results import Results
from ..ranks.setup import SetupFailed, install_loader, rank_environment, run_setup, stage_code
from ..sensors.sampling import Sampling, own_share
from ..system.journal import Clock, Journal
from ..system.loop import STOPPING, Loop
from ..system.node_identity import NodeIdentity
from ..system.paths import FolderWatch, Paths
from ..system.plain_files import open_to_add
from ..system.prctl import adopt_orphans
from ..system.processes import signal_name
from .lease import Leases
from .word import RunWord
from .workdir import Keeping

TURN_S, BUSY_TURN_S = 0.5, 0.05
SOFTWARE_S = 1.0


class Role(Protocol):
    """How a node stands to the others: it leads or it follows.

    The node has it `tell` the leader, whichever process that is now, `tick` at every turn of the loop, and `beat`.
    """

    def tell(self, message: Dict[str, Any]) -> None: ...

    def tick(self) -> None: ...

    def beat(self) -> None: ...

    def close(self) -> None: ...


class Node:
    """One node of a run: its ranks, its record, and what it and the leader say to each other."""

    def __init__(self, order: Order, paths: Paths, identity: NodeIdentity, token: bytes) -> None:
        node, clock = identity.node, Clock()
        self.order, self.paths, self.identity, self.token = fill_placeholders(order, paths), paths, identity, token
        self.loop = Loop()
        self.instance = os.urandom(16).hex()
        self.exit_code: Optional[int] = None
        self.epoch: Optional[Epoch] = None
        self.signalled: Optional[str] = None
        self._counters: Dict[str, Any] = {}
        self._stop_at: Optional[float] = None
        """While the ranks are being ended: when what is left of them is killed."""
        self._broken: Optional[RankFailure] = None
        self._environ: Dict[str, str] = {}
        self._news: Dict[str, Any] = {}
        """What the leader has not heard yet, or what it may not have heard."""
        self._ready_sent = 0
        self._gpus: List[Dict[str, Any]] = []
        self.journal = Journal(os.path.join(paths.record, "events.jsonl"), node, clock)
        self.journal.epoch = (identity.restart, 0)
        self.say = self.journal.say
        secrets = [os.environ[name] for name in order.secrets if name in os.environ]
        self.log = NodeLog(paths.record, order.log_bytes, Masker(secrets), clock.now)
        self.leases = Leases(paths.lease, identity.job, identity.copy, paths.cancel_marks)
        self.keeping = Keeping(paths.code, paths.workdir, None if node else order.keep)
        self._folder_watch = FolderWatch(paths.folder, order.gone_s)
        self._software_thread = threading.Thread(target=self._say_software, daemon=True)
        self._data = NodeData(self.order, paths, identity, self.loop)
        self._sampling = Sampling(self.journal, node, os.path.join(paths.record, "metrics.jsonl"), order.sample_s)
        self._results = Results(paths.record, order.goal, self.journal, Recogniser(order.results, guesses=node == 0))
        self.ranks = Ranks(self.order, node, self.loop, self.log, self.say)
        self._memory = RankMemory(self.order, node, self.ranks, self.say)
        self._pulses = Pulses(self.order, self.ranks)
        self.pulse = self._pulses.beat
        self.word = RunWord(order.run, node, self.ranks)

    # the life of a node

    def run(self, role_of: Callable[[Node], Role]) -> int:
        """Live from the first event to the last, in the role that `role_of` gives; return the exit code."""
        self.loop.catch_signals()
        adopt_orphans()
        if self.identity.node == 0:
            self.leases.keep_room()
        self._start_sampling()
        self._connect()
        self._memory.hold(self.loop)
        self._prepare()
        self._data.begin(self.journal, self.token, self.instance, os.environ)
        self.ranks.listen()
        role = role_of(self)
        self.loop.every("beat", self.order.beat_s, lambda: self._beat(role))
        try:
            # A node that need not wait for others does not wait for the first turn either.
            role.tick()
            while self.exit_code is None:
                self._turn(role)
        finally:
            self._close(role)
        return self.exit_code

    def _connect(self) -> None:
        """Let each part hear what the ranks do."""
        self._results.on_hit = self._on_hit
        if self.order.replace_slow is not None:
            self._results.on_works = self._on_works
        self.ranks.on_change = self._on_change
        self.ranks.on_line, self.ranks.on_last_result = self._results.hear, self._results.end
        self.ranks.on_rank = self._sampling.sampler.watch_rank

    def _turn(self, role: Role) -> None:
        # Between attempts and at the end every step is waited for by somebody.
        limit_s = TURN_S if self.ranks.running and self._stop_at is None else BUSY_TURN_S
        for number in self.loop.turn(limit_s):
            self._on_signal(number)
        self.ranks.check()
        self._results.tick()
        self._finish_stop(role)
        role.tick()

    def _close(self, role: Role) -> None:
        self.ranks.kill()
        self.ranks.finish()
        role.close()
        self.word.close()
        self._data.close()
        self._results.close()
        self._sampling.stop()
        if self.log.lost_bytes:
            text = "log lines found no room on disk"
            self.say("seen", what="log", device="disk", value=self.log.lost_bytes, text=text)
        self.log.close()
        self._memory.close()
        self.paths.clear()
        if self._software_thread.is_alive():
            self._software_thread.join(SOFTWARE_S)
        if self.identity.node == 0:
            self.journal.close(self.leases.give_room)
            self.leases.give_room()
        else:
            self.journal.close()
        _mark_closed(self.paths.record)

    def _start_sampling(self) -> None:
        facts = self._sampling.open()
        facts["version"], facts["python"] = __version__, ".".join(map(str, sys.version_info[:3]))
        self._gpus = facts.get("gpus") or []
        self.say("pilot", host=self.identity.host, pid=os.getpid(), restart=self.identity.restart, **facts)
        if self.order.rdma:
            self.say("rdma", **topology.rdma_report())
        self._sampling.start(partial(own_share, cpus=facts["cpus"]) if self.order.virtual else dict)

    def _prepare(self) -> None:
        """Stage code and environment before joining, so that the others wait for a node that is ready to go."""
        began = time.monotonic()
        try:
            self.paths.make_checkpoint()
            size = stage_code(self.order, self.paths)
            if self.order.code:
                self.say("staged", what="code", bytes=size, took_s=round(time.monotonic() - began, 3))
            environ = rank_environment(self.order, os.environ, self.paths)
            if self.order.loader:
                install_loader(os.path.join(self.paths.scratch, "lib"), environ)
            self._environ = run_setup(self.order.setup, environ, self.paths.code, self._interrupted)
            self._software_thread.start()
            self.keeping.note()
        except (SetupFailed, OSError) as error:
            lines = getattr(error, "tail", [])
            tail = [self.log.mask.text(line) for line in lines]
            reason = self.log.mask.text(str(error))
            self._broken = RankFailure(None, 1, None, round(time.monotonic() - began, 3), reason, tail)
        try:
            count, rdma = self.order.ranks_per_node, self.order.rdma
            self.ranks.bindings = topology.bind_ranks(self.order.hardware, self._gpus, count, rdma)
        except Exception as error:  # binding is a gain, never a condition
            self.say("sensor", name="binding", error=str(error))

    def _say_software(self) -> None:
        """Tell what ranks start with, in a thread: its folders may be on a slow file system, and nobody waits."""
        from ..ranks.software import told_of

        try:
            self.say("software", **told_of(self.order.command, self._environ, self.identity.node == 0, self.log.mask))
        except Exception as error:  # nice to know, never a condition
            self.say("sensor", name="software", error=str(error))

    def _interrupted(self) -> bool:
        for number in self.loop.signals():
            if number in STOPPING:
                self.signalled = signal_name(number)
        return self.signalled is not None

    # what the leader says

    def facts(self) -> Dict[str, Any]:
        """Return what a node says of itself when it joins; by the counters a new leader takes over from the old one."""
        identity = self.identity
        own = {"node": identity.node, "host": identity.host, "restart": identity.restart, "lost": identity.lost}
        state = {"instance": self.instance, "socket": self.ranks.socket_name, "idle": not self.ranks.running}
        if self._broken is not None:
            state["broken"] = True
        return {**own, **state, **self._data.facts(), "epoch": self.epoch, **self._counters}

    def take(self, message: Dict[str, Any]) -> None:
        """Do what the leader says; a kind this pilot does not know is a later one's and is passed over."""
        handlers = {"go": self._on_go, "stop": self._on_stop, "end": self._on_end, "stage": self._data.stage}
        handlers["stacks"], handlers["wait"] = self._on_stacks, self._take_epoch
        handler = handlers.get(str(message.get(KEY_KIND)))
        if handler:
            handler(message)

    def _take_epoch(self, message: Dict[str, Any]) -> None:
        """Be in the attempt that begins, as one that trains in it or waits."""
        self.epoch = self.journal.epoch = (int(message["epoch"][0]), int(message["epoch"][1]))
        self._counters = {name: message[name] for name in ("spent", "attempt", "began", "slow_at")}

    def _on_go(self, message: Dict[str, Any]) -> None:
        self._take_epoch(message)
        self._news, self._stop_at, self._ready_sent = {}, None, 0
        self._results.begin_attempt()
        if self._broken is not None:
            self._report_failure(self._broken, fatal=True)
            return
        go = Go(
            message["attempt"], message["place"], message["master_addr"], message["master_port"], message["sockets"]
        )
        launch = self.order.launcher != "mpi" or self.identity.node == 0
        self.ranks.start(go, self._environ, self.paths.code, launch)

    def _on_stacks(self, message: Dict[str, Any]) -> None:
        """Have the ranks say where they are as they end: the attempt hangs, and its end follows this message."""
        self.ranks.stack_of = int(message["rank"])

    def _on_stop(self, message: Dict[str, Any]) -> None:
        if self._stop_at is None:
            self._stop_at = time.monotonic() + float(message["grace_s"])
            if self.ranks.stack_of is None:
                self.ranks.signal(signal.SIGTERM)
            else:
                self.ranks.abort()

    def _finish_stop(self, role: Role) -> None:
        """Kill what is left of the tree, after the grace period or as soon as the ranks are gone."""
        if self._stop_at is not None and (self.ranks.idle or time.monotonic() >= self._stop_at):
            self.end_ranks()
            role.tell({KEY_KIND: "stopped"})

    def end_ranks(self) -> None:
        """End this node's part of the attempt at once."""
        self._stop_at = None
        self.ranks.kill()
        self.loop.reap()
        self.ranks.finish()
        # A goal that was met with the last words is met.
        self._news = {name: value for name, value in self._news.items() if name == "value"}
        self._sampling.sampler.forget_ranks()

    def _on_end(self, message: Dict[str, Any]) -> None:
        """End this node; of nodes that are one job only the leader says how: another could end it too early."""
        told_by_leader = bool(self.identity.copy) and self.identity.node > 0
        self.exit_code = 0 if told_by_leader else EXITS[str(message["state"])]

    # what the ranks report

    def _on_change(self) -> None:
        self._news["changed"] = True

    def _on_hit(self, value: float) -> None:
        self._news["value"] = value

    def _on_works(self, works: Dict[str, Any]) -> None:
        self._news["works"] = [*self._news.get("works", []), works][-SLOW_IN_A_ROW:]

    def report_ranks(self, role: Role) -> None:
        """Tell the leader what changed since the last turn; once each."""
        for message in self._data.messages():
            role.tell(message)
        if "value" in self._news:
            role.tell({KEY_KIND: "value", "value": self._news.pop("value")})
        for works in self._news.pop("works", []):
            role.tell({KEY_KIND: "works", "works": works})
        if not self._news.pop("changed", False):
            return
        if self.ranks.reported > self._ready_sent:
            self._ready_sent = self.ranks.reported
            role.tell({KEY_KIND: "ready", "ranks": self._ready_sent})
        if self.ranks.failure is not None and "failed" not in self._news and self._stop_at is None:
            self._report_failure(self._memory.explained(self.ranks.failure))
        if self.ranks.running and self.ranks.done and self._stop_at is None:
            self.end_ranks()
            role.tell({KEY_KIND: "done"})
        elif self._news.get("failed"):
            role.tell({KEY_KIND: "failed", **self._news["failed"]})
            self._news["failed"] = {}

    def say_again(self) -> None:
        """Report everything again after a broken connection: what was reported last may not have arrived."""
        self._ready_sent = 0
        self._news["changed"] = True
        if self._news.get("failed") == {}:
            del self._news["failed"]

    def _report_failure(self, failure: RankFailure, fatal: bool = False) -> None:
        """Note a failure for the leader; a fatal one would come again in every attempt, so it spends no retry."""
        self._news["failed"] = {**failure._asdict(), "fatal": fatal}
        self._news["changed"] = True

    # signals and time

    def _on_signal(self, number: int) -> None:
        self.say("signal", name=signal_name(number))
        if number in STOPPING:
            self.signalled = signal_name(number)
        else:
            self.ranks.signal(number)

    def _beat(self, role: Role) -> None:
        role.beat()
        self.word.beat()
        if not self.signalled and self._folder_watch.is_gone():
            self._on_signal(signal.SIGTERM)
        if self.epoch is None:
            return
        newer = self.leases.newer_than(self.epoch, own_too=self.identity.node == 0)
        if newer:
            self.say("fenced", by=list(newer.epoch), job=newer.job)
            self.end_ranks()
            self.exit_code = EXIT_FENCED


def _mark_closed(record: str) -> None:
    """Tell whoever reads or ships the record that all is written; a mirror brings nothing of an empty file."""
    with suppress(OSError):
        file = open_to_add(os.path.join(record, CLOSED))
        os.write(file, b"closed\n")
        os.close(file)
