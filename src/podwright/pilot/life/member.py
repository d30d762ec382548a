"""One node as the leader sees it, and which of all ranks most likely holds the others up."""

from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..protocol import KEY_KIND, Order, node_names

_STUCK_STATES = (("T", "its process is stopped"), ("t", "it is being traced"), ("D", "it waits in the kernel"))
"""The state letters of /proc that no running rank keeps, the most certain first."""
_ODD_SHARE = 0.2
"""Of a core: ranks of one program differ by less than this without being odd."""


NAMED_NODES = 8
MAX_LOST = 20
"""How often one node of a run may be lost; nodes that were given back are not."""


class Member:
    """One node as the leader sees it. `link` is anything with send(message), close() and alive."""

    def __init__(self, node: int, facts: Dict[str, Any], link: Any, heard: float = 0.0) -> None:
        self.node, self.link, self.heard = node, link, heard
        self.host = str(facts.get("host", ""))
        self.restart = int(facts.get("restart", 0))
        self.lost = int(facts.get("lost", 0))
        self.instance = str(facts.get("instance", ""))
        self.socket = str(facts.get("socket", ""))
        self.idle = bool(facts.get("idle", True))
        self.staged = bool(facts.get("staged", True))
        self.broken = bool(facts.get("broken"))
        """Its set-up failed: it says why when it is to train, which it is only where there is no other."""
        self.address, self.data_port = str(facts.get("address", "")), int(facts.get("data_port", 0))
        self.place: Optional[int] = None
        """Which of the nodes that train it is in this attempt; None of one that waits."""
        self.slow = False
        """Its place was given to another because a rank of it was slow: it trains again where there is no other."""
        self.ready = 0
        self.done, self.done_at = False, 0.0
        self.silent_s = 0.0
        self.ranks: Dict[str, List[Any]] = {}

    def on_beat(self, message: Dict[str, Any]) -> None:
        """Take a heartbeat."""
        self.silent_s = float(message.get("silent_s", 0.0))
        self.ranks = message.get("ranks") or {}

    def on_staged(self, message: Dict[str, Any]) -> None:
        """Take note that its data is there."""
        self.staged = True

    def on_done(self, message: Dict[str, Any]) -> None:
        """Take note that its ranks have ended well."""
        self.done = self.idle = True
        self.done_at = self.heard

    def on_stopped(self, message: Dict[str, Any]) -> None:
        """Take note that its ranks are gone."""
        self.idle = True

    def begin_attempt(self, place: Optional[int]) -> None:
        """Forget what the attempt before left behind; without a place it waits."""
        self.place, self.idle, self.done, self.done_at = place, place is None, False, 0.0
        self.ready, self.silent_s, self.ranks = 0, 0.0, {}


class StageRound:
    """Nodes that know of each other. A node that is gone or was replaced ends the round, and another begins."""

    def __init__(self, members: List[Member]) -> None:
        self._instances = [member.instance for member in members]
        peers = [(member.node, member.address, member.data_port) for member in members]
        for member in members:
            member.link.send({KEY_KIND: "stage", "peers": peers})

    def is_over(self, members: Iterable[Member], now: float, silence_s: float) -> bool:
        """Return whether all have their data, or not all are here any more; a node that is silent is not."""
        here = []
        for member in members:
            if now - member.heard > silence_s:
                member.link.close()
            if member.link.alive:
                here.append(member)
        return [member.instance for member in here] != self._instances or all(member.staged for member in here)


class Members(Dict[int, Member]):
    """The nodes that have joined, by their number."""

    @property
    def here(self) -> List[Member]:
        """Return those whose link lives."""
        return [member for member in self.values() if member.link.alive]

    @property
    def training(self) -> List[Member]:
        """Return those that have a part in this attempt."""
        return [member for member in self.values() if member.place is not None]

    def by_place(self, count: int) -> List[Member]:
        """Return who trains in the next attempt: whoever is here keeps its place, others take those that are free.

        Node 0 leads and always has the first place: the ranks meet at its address.
        """
        taken = {member.place: member for member in self.here if member.place is not None}
        free = [member for member in self.here if member.place is None]
        free.sort(key=lambda member: (member.broken, member.slow, not member.staged, member.node), reverse=True)
        return [taken[place] if place in taken else free.pop() for place in range(count)]

    def tell(self, message: Dict[str, Any]) -> None:
        """Send every node the same."""
        for member in self.values():
            member.link.send(message)

    def name(self, node: int) -> str:
        """Return what a node is called; one that never joined has its number only."""
        return node_names({number: member.host for number, member in self.items()}).get(node, f"node{node}")

    def hosts(self, count: int) -> List[str]:
        """Return the host of each node by its number; of one that never joined an empty name."""
        return [self[node].host if node in self else "" for node in range(count)]

    def incomplete(self, order: Order) -> str:
        """Return why a run cannot begin, in words: which nodes are missing, the first of many."""
        numbers = [member.node for member in self.here]
        missing = [str(node) for node in range(order.allocated) if node not in numbers]
        if not missing:
            return "a node would not stop"
        names = ", ".join(missing[:NAMED_NODES])
        if len(missing) > NAMED_NODES:
            names += " ..."
        return f"node {names} did not join within {order.join_timeout_s:g} s"

    def absent(self, now: float, max_s: float) -> str:
        """Return which node was not heard of for longer than that, in words; nothing where all were."""
        for node, member in self.items():
            if now - member.heard > max_s:
                return f"{self.name(node)} was gone and did not come back within {max_s:g} s"
        return ""

    def worn_out(self) -> str:
        """Return which node was lost too often for another attempt, in words; nothing where none was."""
        for member in self.values():
            if member.lost > MAX_LOST:
                return f"node {member.node} was lost {member.lost} times; its last copy is on {member.host}"
        return ""


class RankPulse(NamedTuple):
    """What the last heartbeat of a node says of one rank; the fields after `node` come as a list in this order."""

    rank: int
    node: int
    silent_s: float
    cpu_share: float
    state: str
    step: Optional[float]


class Hang(NamedTuple):
    """Nothing is heard of any rank, and which of them most likely holds the others up."""

    rank: int
    node: int
    silent_s: float
    why: str


def find_hang(members: Collection[Member], limit_s: float, now: float) -> Optional[Hang]:
    """Return who hangs where every node that is not done was silent for longer than the limit.

    Of many programs one rank alone speaks: the others have been silent only since its node is done.
    """
    waiting = [member for member in members if not member.done]
    if not waiting or any(member.silent_s <= limit_s for member in waiting):
        return None
    if any(member.done and now - member.done_at <= limit_s for member in members):
        return None
    rank, node, why = suspect(members)
    return Hang(rank, node, round(min(member.silent_s for member in waiting), 1), why)


def suspect(members: Iterable[Member]) -> Tuple[int, int, str]:
    """Return (rank, node, why) of the rank that most likely holds the others up.

    Rules in order of certainty: a stopped process, one stuck in the kernel, one behind the others in steps, one whose
    CPU use differs, the longest silent.
    """
    pulses = _pulses(members)
    if not pulses:
        return 0, 0, "no rank reported anything"
    for rule in (_stuck, _behind, _odd):
        suspected = rule(pulses)
        if suspected:
            return suspected
    silent = max(pulses, key=lambda pulse: pulse.silent_s)
    return silent.rank, silent.node, f"it has printed nothing for {silent.silent_s:.0f} s"


def _pulses(members: Iterable[Member]) -> List[RankPulse]:
    pulses = []
    for member in members:
        if not member.done:
            pulses += [RankPulse(int(rank), member.node, *facts) for rank, facts in member.ranks.items()]
    return pulses


def _stuck(pulses: List[RankPulse]) -> Optional[Tuple[int, int, str]]:
    for state, why in _STUCK_STATES:
        for pulse in pulses:
            if pulse.state == state:
                return pulse.rank, pulse.node, why
    return None


def _behind(pulses: List[RankPulse]) -> Optional[Tuple[int, int, str]]:
    """Return the rank with the least step, where the steps differ; a rank that reports no step is not behind."""
    steps = [(pulse.step, pulse) for pulse in pulses if pulse.step is not None]
    if len({step for step, _ in steps}) < 2:
        return None
    step, last = min(steps, key=lambda pair: pair[0])
    return last.rank, last.node, f"it is at step {step:g}, others are further"


def _odd(pulses: List[RankPulse]) -> Optional[Tuple[int, int, str]]:
    """Return the rank whose CPU use is farthest from the median; of two ranks neither is the odd one."""
    if len(pulses) < 3:
        return None
    # By hand: `statistics` imports decimal and fractions, which would double the time a pilot takes to start.
    middle = sorted(pulse.cpu_share for pulse in pulses)[len(pulses) // 2]
    odd = max(pulses, key=lambda pulse: abs(pulse.cpu_share - middle))
    if abs(odd.cpu_share - middle) <= _ODD_SHARE:
        return None
    return odd.rank, odd.node, f"it uses {odd.cpu_share:.0%} of a core, the others {middle:.0%}"
