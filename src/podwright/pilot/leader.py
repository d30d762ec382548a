"""Node 0's second job: gather the nodes, start attempts, judge failures, end the run.

Phases: `join` (wait until every node is here and idle) -> `run` -> `stop` (ranks are being ended) -> `join` again with
a greater epoch, or `end`. Every input is a method; every decision is in one place each.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

from .journal import Journal
from .lease import Leases
from .links import free_port
from .protocol import EXIT_FAILED, EXIT_FENCED, EXIT_GIVEN_BACK, EXIT_STOPPED, KEY_EPOCH, KEY_KIND, Epoch, Order

SETTLE_S = 1.0
"""How long a failure waits for the news that its real cause was a lost node."""
FAILURE_GRACE_S = 5.0
"""Ranks whose peer is gone cannot write a checkpoint together; they get less than the user's grace."""

EXITS = {
    "succeeded": 0,
    "failed": EXIT_FAILED,
    "terminated": EXIT_STOPPED,
    "given_back": EXIT_GIVEN_BACK,
    "fenced": EXIT_FENCED,
}


class Member:
    """One node as the leader sees it. `link` is anything with send(message), close() and alive."""

    def __init__(self, node: int, facts: Dict[str, Any], link: Any) -> None:
        self.node, self.link = node, link
        self.host = str(facts.get("host", ""))
        self.restart = int(facts.get("restart", 0))
        self.instance = str(facts.get("instance", ""))
        self.socket = str(facts.get("socket", ""))
        self.idle = bool(facts.get("idle", True))
        self.heard = time.monotonic()
        self.ready = 0
        self.done = False
        self.silent_s = 0.0
        self.ranks: Dict[str, List[Any]] = {}


class Leader:
    def __init__(self, order: Order, restart: int, address: str, leases: Leases, journal: Journal) -> None:
        self._order, self._restart, self._address = order, restart, address
        self._leases, self._say, self._now = leases, journal.say, journal.now
        self.members: Dict[int, Member] = {}
        self.phase = "join"
        self.epoch: Optional[Epoch] = None
        self.attempt = 0
        self._next: Optional[Epoch] = None
        self._spent = 0
        self._seen: Epoch = (-1, 0)
        self._began: Optional[float] = None
        self._phase_began = time.monotonic()
        self._failure: Optional[Tuple[float, int, Dict[str, Any]]] = None
        self._verdict: Tuple[str, str, Optional[int]] = ("failed", "", None)
        self._is_ready = False
        self._goal_reached = False
        self._went = 0.0
        self._checkpoint: Tuple[str, float] = ("", 0.0)
        self.exit_code: Optional[int] = None

    # what the nodes tell

    def join(self, facts: Dict[str, Any], link: Any) -> Optional[str]:
        """A node is here. Gives back why it may not be, if so."""
        node, restart = int(facts.get("node", -1)), int(facts.get("restart", 0))
        if not 0 <= node < self._order.nodes:
            return f"the run has no node {node}"
        old = self.members.get(node)
        same = old is not None and old.instance == facts.get("instance")
        if old is not None and not same:
            if restart < old.restart:
                return f"node {node} was replaced by a later copy"
            if restart == old.restart and old.link.alive and time.monotonic() - old.heard < self._order.silence_s:
                return f"node {node} is already here, from {old.host}"
        self._learn(facts)
        self._enter(Member(node, facts, link), old, same)
        return None

    def _learn(self, facts: Dict[str, Any]) -> None:
        """A leader that replaces a lost one takes up the counters where the nodes saw them last."""
        epoch = facts.get("epoch")
        if epoch:
            self._seen = max(self._seen, (int(epoch[0]), int(epoch[1])))
        self._spent = max(self._spent, int(facts.get("spent", 0)))
        self.attempt = max(self.attempt, int(facts.get("attempt", 0)))
        began = facts.get("began")
        if began and (self._began is None or began < self._began):
            self._began = float(began)

    def _enter(self, member: Member, old: Optional[Member], same: bool) -> None:
        if old is not None:
            old.link.close()
        self.members[member.node] = member
        if same and old is not None and self.phase == "run" and not member.idle:
            member.ready, member.done = old.ready, old.done  # a broken connection, not a broken node
            return
        self._say("joined", node=member.node, host=member.host, of=self._order.nodes)
        if self.phase == "run":
            self._lost(member.node, "was replaced")
        elif self.phase == "end":
            member.link.send({KEY_KIND: "end", "state": self._verdict[0]})
        elif not member.idle:
            member.link.send({KEY_KIND: "stop", "grace_s": FAILURE_GRACE_S})

    def hear(self, node: int, message: Dict[str, Any]) -> None:
        member = self.members[node]
        member.heard = time.monotonic()
        handler = getattr(self, "_on_" + str(message.get(KEY_KIND)), None)
        epoch = message.get(KEY_EPOCH)
        stale = self.phase == "run" and epoch is not None and tuple(epoch) != self.epoch
        if handler and not stale:  # what an old attempt left to say must not be held against the new one
            handler(member, message)

    def _on_beat(self, member: Member, message: Dict[str, Any]) -> None:
        member.silent_s = float(message.get("silent_s", 0.0))
        member.ranks = message.get("ranks") or {}

    def _on_ready(self, member: Member, message: Dict[str, Any]) -> None:
        member.ready = int(message["ranks"])
        if self.phase == "run" and not self._is_ready:
            count = sum(m.ready for m in self.members.values())
            if count == self._order.world_size:
                self._is_ready = True
                self._say("ready", world_size=count)

    def _on_failed(self, member: Member, message: Dict[str, Any]) -> None:
        if self.phase == "run" and self._failure is None:
            self._failure = (time.monotonic(), member.node, message)

    def _on_done(self, member: Member, message: Dict[str, Any]) -> None:
        member.done = member.idle = True

    def _on_stopped(self, member: Member, message: Dict[str, Any]) -> None:
        member.idle = True

    def _on_signal(self, member: Member, message: Dict[str, Any]) -> None:
        self.terminate(f"stopped by {message.get('name')}")

    def _on_value(self, member: Member, message: Dict[str, Any]) -> None:
        goal = self._order.goal or {}
        value = message["value"]
        if self._goal_reached or not goal:
            return
        reached = value >= goal["at_least"] if goal.get("at_least") is not None else value <= goal["at_most"]
        if reached:
            self._goal_reached = True
            took_s = round(self._now() - (self._began or self._now()), 3)
            self._say("goal", metric=goal["metric"], value=value, took_s=took_s)

    # what time tells

    def tick(self) -> None:
        {"join": self._gather, "run": self._judge, "stop": self._wait_idle, "end": self._leave}[self.phase]()

    def beat(self) -> None:
        for member in self.members.values():
            member.link.send({KEY_KIND: "beat"})
        if self.epoch is not None:
            self._leases.renew(self.epoch)
        self._look_at_checkpoint()

    def _gather(self) -> None:
        here = [m for m in self.members.values() if m.link.alive]
        complete = len(here) == self._order.nodes and all(m.idle for m in here)
        if complete and self._go():
            return
        if self._over_time():
            self._end_over_time()
        elif time.monotonic() - self._phase_began > self._order.join_timeout_s:
            missing = sorted(set(range(self._order.nodes)) - {m.node for m in here})
            names = ", ".join(str(node) for node in missing[:8]) + (" ..." if len(missing) > 8 else "")
            why = f"node {names} did not join within {self._order.join_timeout_s:g} s"
            if not missing:
                why = "the lease folder cannot be written" if complete else "a node would not stop"
            self._say("given_back", why=why)
            self.end("given_back", why, None)

    def _go(self) -> bool:
        """Begin the next attempt; False when its epoch could not be claimed this time."""
        epoch = self._claim()
        if epoch is None:
            return self.phase == "end"
        self.epoch, self._next = epoch, None
        self.attempt += 1
        self._began = self._began or self._now()
        self._went = time.monotonic()
        members = [self.members[node] for node in range(self._order.nodes)]
        for member in members:
            member.idle = member.done = False
            member.ready, member.silent_s, member.ranks = 0, 0.0, {}
        self._failure, self._is_ready = None, False
        go = {
            "attempt": self.attempt,
            "master_addr": self._address,
            "master_port": free_port(self._order.bind),
            "world_size": self._order.world_size,
        }
        for member in members:
            member.link.send(
                {KEY_KIND: "go", "epoch": epoch, "sockets": [m.socket for m in members], **go, **self._counters()}
            )
        hosts = [member.host for member in members]
        took_s = round(time.monotonic() - self._phase_began, 3)
        self._enter_phase("run")
        self._say_at(epoch, "go", hosts=hosts, took_s=took_s, retries_left=self._order.retries - self._spent, **go)
        return True

    def _say_at(self, epoch: Epoch, kind: str, **fields: Any) -> None:
        self._say(kind, e=list(epoch), **fields)

    def _counters(self) -> Dict[str, Any]:
        return {"spent": self._spent, "began": self._began, "attempt": self.attempt}

    def _claim(self) -> Optional[Epoch]:
        """The epoch of the next attempt, claimed; None when a living copy of the run stands in the way."""
        rival = self._leases.rival()
        if rival and rival.epoch[0] >= self._restart and self.epoch is None:
            self._say("fenced", by=list(rival.epoch), job=rival.job)
            self.end("fenced", f"another job of this run is running: {rival.job}", None)
            return None
        newest = self._leases.newest()
        if newest:
            self._learn({"epoch": newest.epoch, **newest.facts})
        after = (self._seen[0] + 1, 0) if self._seen >= (self._restart, 0) else (self._restart, 0)
        epoch = self._next if self._next and self._next > self._seen else after
        facts = {"spent": self._spent, "attempt": self.attempt + 1, "began": self._began or self._now()}
        if not self._leases.claim(epoch, facts):
            return None  # somebody was faster: look again at the next tick
        self._seen = epoch
        return epoch

    def _judge(self) -> None:
        now = time.monotonic()
        quiet = [m for m in self.members.values() if now - m.heard > self._order.silence_s and not m.done]
        if quiet:
            self._lost(quiet[0].node, f"was silent for {self._order.silence_s:g} s")
        elif self._failure is not None:
            self._judge_failure(now)
        elif all(m.done for m in self.members.values()):
            self.end("succeeded", "", 0)
        elif self._over_time():
            self._end_over_time()
        else:
            self._judge_silence()

    def _over_time(self) -> bool:
        limit = self._order.time_limit_s
        return limit is not None and self._began is not None and self._now() - self._began > limit

    def _end_over_time(self) -> None:
        self.stop_for_good("failed", f"the time limit of {self._order.time_limit_s:g} s is over", None)

    @property
    def is_failing(self) -> bool:
        """A rank failed, and that was not judged yet."""
        return self.phase == "run" and self._failure is not None

    def _judge_failure(self, now: float) -> None:
        """The cause may come late: a node that was lost, or a signal to all processes that took a rank first."""
        assert self._failure is not None
        at, node, failure = self._failure
        cut = [m.node for m in self.members.values() if not m.link.alive and not m.done]
        if cut:
            self._lost(cut[0], "is gone")
        elif now - at >= (SETTLE_S if self._order.nodes > 1 or failure["signal"] == "SIGTERM" else 0.0):
            self._fail(node, failure)

    def _fail(self, node: int, failure: Dict[str, Any]) -> None:
        rank, host = failure["rank"], self.members[node].host
        stopped = [r for r in range(self._order.world_size) if r != rank]
        fields = {name: failure[name] for name in ("rank", "code", "signal", "after_s", "why", "tail")}
        self._say("failed", node=node, host=host, stopped=stopped, **fields)
        who = f"rank {rank} on {host}" if rank is not None else f"node {node} on {host}:"
        why = f"{who} {failure['why']}"
        if failure.get("fatal"):
            self.stop_for_good("failed", why, failure["code"], FAILURE_GRACE_S)
        else:
            self._retry(why, failure["code"])

    def _judge_silence(self) -> None:
        limit = self._order.hang_after_s
        if limit is None or time.monotonic() - self._went < limit:
            return
        waiting = [m for m in self.members.values() if not m.done]
        if waiting and all(m.silent_s > limit for m in waiting):
            rank, node, why = suspect(self.members.values())
            silent_s = round(min(m.silent_s for m in waiting), 1)
            self._say("hang", rank=rank, node=node, silent_s=silent_s, why=why)
            self._retry(f"rank {rank} on {self.members[node].host} hangs: {why}", None)

    def _retry(self, why: str, code: Optional[int]) -> None:
        if self._spent >= self._order.retries:
            self.stop_for_good("failed", why, code, FAILURE_GRACE_S)
            return
        self._spent += 1
        assert self.epoch is not None
        self._next = (self.epoch[0], self.epoch[1] + 1)
        self._say("retry", attempt=self.attempt + 1, why=why)
        self._stop(FAILURE_GRACE_S)

    def _lost(self, node: int, how: str) -> None:
        """The engine brings a lost node back; that spends no retry."""
        assert self.epoch is not None
        self._next = (self.epoch[0] + 1, 0)
        self._say("retry", attempt=self.attempt + 1, why=f"node {node} {how}", lost=node)
        self._stop(FAILURE_GRACE_S)

    def _stop(self, grace_s: float) -> None:
        for member in self.members.values():
            if not member.idle:
                member.link.send({KEY_KIND: "stop", "grace_s": grace_s})
        self._stop_by = time.monotonic() + grace_s + 15.0
        self._enter_phase("stop")

    def _wait_idle(self) -> None:
        here = [m for m in self.members.values() if m.link.alive]
        if all(m.idle for m in here) or time.monotonic() > self._stop_by:
            if self._next is None:
                self.end(*self._verdict)
            else:
                self._enter_phase("join")

    def terminate(self, why: str) -> None:
        """A run that is being ended already keeps its own reason."""
        if self.phase != "end" and not (self.phase == "stop" and self._next is None):
            self.stop_for_good("terminated", why, 143)

    def give_back(self, why: str) -> None:
        """The engine wants the nodes back: the ranks write their checkpoint, and it starts the run again later."""
        if self.phase == "run" or (self.phase == "stop" and self._next is not None):
            self._say("given_back", why=why)
            self.stop_for_good("given_back", why, None)
        elif self.phase == "join":
            self._say("given_back", why=why)
            self.end("given_back", why, None)

    def stop_for_good(self, state: str, why: str, code: Optional[int], grace_s: Optional[float] = None) -> None:
        self._verdict, self._next = (state, why, code), None
        self._stop(self._order.grace_s if grace_s is None else grace_s)

    def end(self, state: str, reason: str, code: Optional[int]) -> None:
        if state in ("succeeded", "failed", "terminated"):
            self._say("end", state=state, reason=reason, exit_code=code)
        for member in self.members.values():
            member.link.send({KEY_KIND: "end", "state": state})
        self._verdict = (state, reason, code)
        self._enter_phase("end")

    def _leave(self) -> None:
        """Members close their links when they have read the end; a dead one is not waited for long."""
        others = [m for m in self.members.values() if m.node != 0 and m.link.alive]
        if not others or time.monotonic() - self._phase_began > 3.0:
            self.exit_code = EXITS[self._verdict[0]]

    def _enter_phase(self, phase: str) -> None:
        self.phase, self._phase_began = phase, time.monotonic()

    def watch_checkpoint(self, folder: str) -> None:
        self._checkpoint = (folder, self._now())

    def _look_at_checkpoint(self) -> None:
        folder, since = self._checkpoint
        if not folder or self.phase != "run":
            return
        try:
            with os.scandir(folder) as entries:
                files = [(e.stat().st_mtime, e.name, e.stat().st_size) for e in entries if e.name[:1] != "."]
        except OSError:
            return
        newest = max(files, default=None)
        if newest and newest[0] > since:
            self._checkpoint = (folder, newest[0])
            self._say("checkpoint", name=newest[1], bytes=newest[2])


def suspect(members: Any) -> Tuple[int, int, str]:
    """(rank, node, why) of the rank that most likely holds the others up.

    A beat carries per rank [silent_s, share of a core, process state, step]. Rules in order of certainty: a stopped
    process, one stuck in the kernel, one behind the others in steps, one whose CPU use differs, the longest silent.
    """
    rows = [
        (int(rank), member.node, *facts)
        for member in members
        if not member.done
        for rank, facts in member.ranks.items()
    ]
    if not rows:
        return 0, 0, "no rank told anything"
    for state, why in (("T", "its process is stopped"), ("t", "it is being traced"), ("D", "it waits in the kernel")):
        for row in rows:
            if row[4] == state:
                return row[0], row[1], why
    steps = [row for row in rows if row[5] is not None]
    if len({row[5] for row in steps}) > 1:
        row = min(steps, key=lambda row: row[5])
        return row[0], row[1], f"it is at step {row[5]:g}, others are further"
    uses = sorted(row[3] for row in rows)
    middle = uses[len(uses) // 2]
    odd = max(rows, key=lambda row: abs(row[3] - middle))
    if len(rows) > 2 and abs(odd[3] - middle) > 0.2:
        return odd[0], odd[1], f"it uses {odd[3]:.0%} of a core, the others {middle:.0%}"
    row = max(rows, key=lambda row: row[2])
    return row[0], row[1], f"it has printed nothing for {row[2]:.0f} s"
