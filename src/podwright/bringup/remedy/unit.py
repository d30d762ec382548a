"""The unit that remedies: takes what is told of nodes, asks the policy, and has hands do what it says.

One thread decides; each act has a thread of its own, since a drain takes as long as a run. What is decided is in the
journal before it is done.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from podwright.bringup.remedy.journal import RemedyJournal
from podwright.bringup.remedy.policy import (
    ACTS,
    Act,
    Event,
    RemedyAlert,
    RemedyNode,
    RemedyPolicy,
    State,
    is_late,
    step,
    told,
)
from podwright.bringup.remedy.webhook import RemedyNews
from podwright.spec.problems import Refusal

FORGOTTEN_S = 900.0
"""Alertmanager says every few minutes what fires: what it has not said for so long is over."""
AGAIN_S = 60.0
"""How long after an act that failed it is done again, and how often closed nodes are looked at."""
TICK_S = 2.0


@dataclass(frozen=True)
class Outcome:
    """What came of an act."""

    event: Event | None
    text: str = ""


class Acting(Protocol):
    """Does one act on a node, however long it takes; a Refusal says why it could not."""

    def __call__(self, act: Act, node: RemedyNode) -> Outcome:
        """Return what came of it; no event where all is as it was."""


@dataclass(frozen=True)
class DryActing:
    """Does nothing, and says that it went well: so one sees the whole way a node would take. Looks are real."""

    acting: Acting

    def __call__(self, act: Act, node: RemedyNode) -> Outcome:
        """Return what came of it."""
        return self.acting(act, node) if act == "look" else Outcome("done", "not done: this is a dry run")


@dataclass(frozen=True)
class UnitClock:
    """The unit's times: seconds since 1970, and how long it waits for news."""

    now: Callable[[], float] = time.time
    tick_s: float = TICK_S
    again_s: float = AGAIN_S


@dataclass
class RemedyUnit:
    """All nodes of a pod; `hear` is called from any thread, `run` in one."""

    hosts: frozenset[str]
    policy: RemedyPolicy
    journal: RemedyJournal
    acting: Acting
    clock: UnitClock = UnitClock()
    nodes: dict[str, RemedyNode] = field(default_factory=dict)
    _heard: defaultdict[str, dict[str, tuple[RemedyAlert, float]]] = field(default_factory=lambda: defaultdict(dict))
    _results: queue.Queue[Callable[[], None] | None] = field(default_factory=queue.Queue)
    _busy: dict[str, State] = field(default_factory=dict)
    _ended: dict[str, float] = field(default_factory=dict)

    def hear(self, news: list[RemedyNews]) -> None:
        """Take what was told of alerts; hosts that are not this pod's nodes are nobody's."""
        self._results.put(lambda: self._take(news))

    def stop(self) -> None:
        """End `run` when it has done what it heard before."""
        self._results.put(None)

    def run(self) -> None:
        """Go on from the journal until the end."""
        self.resume()
        while True:
            try:
                job = self._results.get(timeout=self.clock.tick_s)
            except queue.Empty:
                self.tick()
                continue
            if job is None:
                return
            job()
            self.tick()

    def resume(self) -> None:
        """Take nodes as the journal has them; a cure that was cut off is not done twice: what follows will show it."""
        now = self.clock.now()
        for host, node in self.journal.nodes().items():
            if host not in self.hosts:
                continue
            self.nodes[host] = node
            self._heard[host] = {alert.key: (alert, now) for alert in node.alerts}
            if node.state == "mending":
                self._step(host, "done", "it was begun before this unit was ended")

    def tick(self) -> None:
        """Forget what is not told any more, wait no longer than the policy does, and do again what failed."""
        now = self.clock.now()
        for host, node in list(self.nodes.items()):
            heard = self._heard[host]
            stale = [key for key, (_, at) in heard.items() if now - at > FORGOTTEN_S]
            for key in stale:
                del heard[key]
            if stale:
                self._tell(host)
            if is_late(self.nodes[host], self.policy, now):
                self._step(host, "late", "its alerts go on")
            elif node.state == "waiting" and not self.nodes[host].alerts:
                self._step(host, "quiet")
            self._begin(host, again=True)

    def _take(self, news: list[RemedyNews]) -> None:
        now = self.clock.now()
        hosts = dict.fromkeys(each.host for each in news if each.host in self.hosts)
        for each in news:
            if each.fires:
                self._heard[each.host][each.alert.key] = (each.alert, now)
            else:
                self._heard[each.host].pop(each.alert.key, None)
        for host in hosts:
            self._tell(host)

    def _tell(self, host: str) -> None:
        alerts = tuple(alert for alert, _ in self._heard[host].values())
        node = self.nodes.get(host, RemedyNode(host))
        self.nodes[host], event = told(node, alerts, self.policy)
        self._step(host, event)

    def _step(self, host: str, event: Event, text: str = "") -> None:
        before = self.nodes[host]
        now = self.clock.now()
        after = step(before, event, self.policy, now)
        if after is before:
            return
        self.nodes[host] = after
        self._ended.pop(host, None)
        self.journal.note(now, event, before, after, text)
        self._begin(host)

    def _begin(self, host: str, again: bool = False) -> None:
        node = self.nodes[host]
        act = ACTS.get(node.state)
        if act is None or host in self._busy:
            return
        ended = self._ended.get(host)
        if again and ended is not None and self.clock.now() - ended < self.clock.again_s:
            return
        self._busy[host] = node.state
        if act != "look":
            self.journal.act(self.clock.now(), node, act, "begins")
        threading.Thread(target=self._do, args=(act, node), name=f"{act} {host}", daemon=True).start()

    def _do(self, act: Act, node: RemedyNode) -> None:
        try:
            outcome = self.acting(act, node)
        except Refusal as refusal:
            outcome = Outcome("failed", refusal.problems[0].message)
        except Exception as error:  # whatever a hand meets must not leave its node busy for ever
            outcome = Outcome("failed", f"{type(error).__name__}: {error}")
        self._results.put(lambda: self._done(act, node, outcome))

    def _done(self, act: Act, node: RemedyNode, outcome: Outcome) -> None:
        del self._busy[node.host]
        self._ended[node.host] = self.clock.now()
        is_unseen = act == "look" and outcome.event == "failed"
        if outcome.event is not None and not is_unseen:
            self.journal.act(self.clock.now(), node, act, outcome.event, outcome.text)
            self._step(node.host, outcome.event, outcome.text)
