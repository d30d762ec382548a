"""What becomes of a node by what is told of it: a table of states and events, and the rule of what is tried when. Pure.

A node is drained, mended when nothing runs there any more, looked at, and taken back when its alerts are over. What was
tried too often, or cannot be mended, needs service; what somebody else has drained is left to him.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

State = Literal["open", "draining", "mending", "waiting", "checking", "resuming", "serving", "service", "left"]
Event = Literal["fires", "quiet", "done", "failed", "foreign", "opened", "late"]
Act = Literal["drain", "mend", "check", "resume", "serve", "look"]
Cure = Literal["wait", "reset", "reboot", "service"]

CURES: tuple[Cure, ...] = ("wait", "reset", "reboot", "service")
"""The gravest last: of several alerts the gravest counts."""
_NEXT: Final = "next"
_AFTER: Final = "after"
_TABLE: Mapping[tuple[State, Event], State | Literal["next", "after"]] = {
    ("open", "fires"): "draining",
    ("draining", "done"): _NEXT,
    ("draining", "foreign"): "left",
    ("mending", "done"): _AFTER,
    ("mending", "failed"): _NEXT,
    ("mending", "foreign"): "left",
    ("waiting", "quiet"): "checking",
    ("waiting", "late"): _NEXT,
    ("checking", "done"): _AFTER,
    ("checking", "failed"): _NEXT,
    ("resuming", "done"): "open",
    ("resuming", "foreign"): "left",
    ("serving", "done"): "service",
    ("serving", "foreign"): "left",
    ("service", "opened"): "open",
    ("left", "opened"): "open",
}
"""Where a node goes; what does not stand here changes nothing. `next`: what is tried now; `after`: what follows it."""
ACTS: Mapping[State, Act] = {
    "draining": "drain",
    "mending": "mend",
    "checking": "check",
    "resuming": "resume",
    "serving": "serve",
    "service": "look",
    "left": "look",
}
"""What is done in a state, when a node comes into it, and again where it failed."""


@dataclass(frozen=True)
class RemedyAlert:
    """One alert that asks for a remedy; `key` is what Alertmanager knows it by."""

    key: str
    remedy: str
    cure: Cure
    text: str = ""


@dataclass(frozen=True)
class RemedyPolicy:
    """What the pod's file allows."""

    drain: frozenset[str]
    resets: bool = True
    """Whether a node is reset and rebooted; else it stays drained until its alerts are over."""
    most: int = 2
    within_s: float = 24 * 3600.0
    """Over which time that is counted."""
    patience_s: float = 1800.0
    """How long alerts may go on after a cure; that of an XID lasts a quarter of an hour by itself."""


@dataclass(frozen=True)
class RemedyNode:
    """All that is known of one node."""

    host: str
    state: State = "open"
    alerts: tuple[RemedyAlert, ...] = ()
    """Those that fire, and are not excused."""
    excused: frozenset[str] = frozenset()
    """Alerts that fired when somebody opened the node: he knows them."""
    cure: Cure = "wait"
    """What is tried now, or was tried last."""
    why: str = ""
    tried: tuple[Cure, ...] = ()
    """What was tried since it was drained."""
    spent: tuple[float, ...] = ()
    """When something was tried, of all drains."""
    since: float = 0.0
    """Since when it is in its state."""


def told(node: RemedyNode, alerts: tuple[RemedyAlert, ...], policy: RemedyPolicy) -> tuple[RemedyNode, Event]:
    """Return the node with the alerts that fire now, and the event that this is."""
    known = tuple(alert for alert in alerts if alert.remedy in policy.drain)
    excused = node.excused & {alert.key for alert in known}
    mine = tuple(sorted((each for each in known if each.key not in excused), key=lambda alert: alert.key))
    return replace(node, alerts=mine, excused=excused), "fires" if mine else "quiet"


def step(node: RemedyNode, event: Event, policy: RemedyPolicy, now: float) -> RemedyNode:
    """Return the node after an event; the same one where it changes nothing."""
    goal = _TABLE.get((node.state, event))
    if goal is None:
        return node
    if goal == _NEXT:
        return _tried(node, policy, now)
    if goal == _AFTER:
        return _entered(node, _after(node), now)
    if goal == "open" and event == "done" and node.alerts:
        # It fired while the node was given back: that begins anew.
        goal = "draining"
    if goal == "draining":
        grave = _gravest(node.alerts)
        node = replace(node, cure=grave.cure, why=grave.text, tried=())
    if event == "opened":
        # Whoever opened it saw what fires, and begins to count anew.
        keys = {alert.key for alert in node.alerts}
        node = replace(node, alerts=(), excused=node.excused | keys, spent=(), tried=())
    return _entered(node, goal, now)


def is_late(node: RemedyNode, policy: RemedyPolicy, now: float) -> bool:
    """Return whether alerts went on for too long after a cure; a link is waited for until it comes back."""
    return node.state == "waiting" and node.cure != "wait" and now - node.since > policy.patience_s


def _entered(node: RemedyNode, state: State, now: float) -> RemedyNode:
    return replace(node, state=state, since=now)


def _gravest(alerts: tuple[RemedyAlert, ...]) -> RemedyAlert:
    return max(alerts, key=lambda alert: CURES.index(alert.cure))


def _after(node: RemedyNode) -> State:
    """Return what follows when a cure or a look went well: nothing is taken back while its alerts go on."""
    if node.alerts:
        return "waiting"
    return "resuming" if node.state == "checking" else "checking"


def _tried(node: RemedyNode, policy: RemedyPolicy, now: float) -> RemedyNode:
    """Return the node with what is tried next: a reset that did not help is followed by a reboot, that by people."""
    cure, why = node.cure, node.why
    if node.alerts:
        grave = _gravest(node.alerts)
        cure, why = max(cure, grave.cure, key=CURES.index), grave.text
    if not policy.resets and cure in ("reset", "reboot"):
        cure = "wait"
    if cure in node.tried:
        cure = "reboot" if cure == "reset" else "service"
    spent = tuple(at for at in node.spent if now - at < policy.within_s)
    if len(spent) >= policy.most:
        cure = "service"
    node = replace(node, cure=cure, why=why)
    if cure == "service":
        return _entered(replace(node, spent=spent), "serving", now)
    node = replace(node, tried=(*node.tried, cure), spent=(*spent, now))
    if cure == "wait":
        return _entered(node, _after(node), now)
    return _entered(node, "mending", now)
