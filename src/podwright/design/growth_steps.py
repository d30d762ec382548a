"""The growth of a pod in the order in which hands do it: leaf by leaf, with what works after each of them.

Leaves of one rail come before those of the next, so that nodes reach each other on the other rails meanwhile. A cable
that is in the way of another, since its port is used for something else, is taken out with it and laid again with its
own leaf.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from podwright.design.growth import End, Growth, ends_of
from podwright.design.wiring import Cable
from podwright.spec.hostlist import natural_key

# The part of the fabric that each port of a host is in, and how much of its way up is there.
Kind = tuple[tuple[str, float], ...]
FABRICS = ("compute", "storage")


@dataclass(frozen=True, slots=True)
class GrowthStep:
    """The work at one leaf, and what holds when it is done.

    `cut_off` are, by fabric, the nodes of the old pod that some others do not reach then: they are to be drained
    before. `bandwidth_left` is what the worst pair of the others still has of its ports.
    """

    leaf: str
    add: tuple[Cable, ...]
    move: tuple[tuple[Cable, Cable], ...]
    remove: tuple[Cable, ...]
    cut_off: dict[str, list[str]]
    bandwidth_left: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return the step as `design --grow-from --steps` lists it."""
        return {
            "leaf": self.leaf,
            "add": [cable._asdict() for cable in self.add],
            "move": [{"from": old._asdict(), "to": new._asdict()} for old, new in self.move],
            "remove": [cable._asdict() for cable in self.remove],
            "cut_off": self.cut_off,
            "bandwidth_left": {name: round(share, 4) for name, share in self.bandwidth_left.items()},
        }


def growth_steps(growth: Growth) -> list[GrowthStep]:
    """Return the steps of a growth; cables above the spines, which no leaf has, are laid with the first one."""
    work = _Work(growth)
    return [work.step(leaf) for leaf in work.leaves]


class _Work:
    """The cables that are there, step by step."""

    def __init__(self, growth: Growth) -> None:
        self.hosts = set(growth.old.requirements.hosts)
        switches = {switch.name: switch for switch in [*growth.old.switches, *growth.new.switches]}
        self.is_leaf = {name for name, switch in switches.items() if switch.tier == "leaf"}
        self.switches = set(switches)
        self.now: dict[End, Cable] = {}
        for cable in growth.old.cables:
            self._lay(cable)
        gone = [old for old, _ in growth.moved] + growth.removed
        fresh = [*growth.added, *(new for _, new in growth.moved)]
        self.came_from = {new: old for old, new in growth.moved}
        self.gone, self.fresh = self._by_leaf(gone), self._by_leaf(fresh)
        names = sorted({*self.gone, *self.fresh} - {""}, key=natural_key)
        self.leaves = sorted(names, key=lambda name: (switches[name].fabric, switches[name].plane))
        if not self.leaves and (gone or fresh):
            self.leaves = [""]
        self.whole = _up(growth.new.cables)

    def step(self, leaf: str) -> GrowthStep:
        """Do the work of one leaf."""
        own = [leaf, ""] if leaf == self.leaves[0] else [leaf]
        gone = list(filter(self._is_laid, chain.from_iterable(self.gone[name] for name in own)))
        fresh = list(chain.from_iterable(self.fresh[name] for name in own))
        for cable in gone:
            self._take(cable)
        ends = chain.from_iterable(map(ends_of, fresh))
        in_the_way = dict.fromkeys(self.now[end] for end in ends if end in self.now)
        for cable in in_the_way:
            self._take(cable)
        for cable in fresh:
            self._lay(cable)
        moved = [(self.came_from[cable], cable) for cable in fresh if self.came_from.get(cable) in set(gone)]
        kept = set(chain.from_iterable(moved))
        cut_off, left = self._look()
        return GrowthStep(
            leaf,
            tuple(cable for cable in fresh if cable not in kept),
            tuple(moved),
            tuple(cable for cable in [*gone, *in_the_way] if cable not in kept),
            cut_off,
            left,
        )

    def _look(self) -> tuple[dict[str, list[str]], dict[str, float]]:
        cut_off: dict[str, list[str]] = {}
        left: dict[str, float] = {}
        laid = list(dict.fromkeys(self.now.values()))
        for fabric in FABRICS:
            cables = [cable for cable in laid if cable.fabric == fabric]
            if cables:
                cut_off[fabric], left[fabric] = _worst(cables, self.hosts, self.switches, self.whole)
        return cut_off, left

    def _by_leaf(self, cables: Iterable[Cable]) -> defaultdict[str, list[Cable]]:
        """Return cables by the leaf that they are at; nothing for those above the spines."""
        found: defaultdict[str, list[Cable]] = defaultdict(list)
        for cable in cables:
            name = next((end for end in (cable.a, cable.b) if end in self.is_leaf), "")
            found[name].append(cable)
        return found

    def _is_laid(self, cable: Cable) -> bool:
        return self.now.get(ends_of(cable)[0]) == cable

    def _take(self, cable: Cable) -> None:
        for end in ends_of(cable):
            del self.now[end]

    def _lay(self, cable: Cable) -> None:
        for end in ends_of(cable):
            self.now[end] = cable


def _worst(
    cables: Sequence[Cable], hosts: Collection[str], switches: Collection[str], whole: Counter[str]
) -> tuple[list[str], float]:
    """Return the hosts that most others do not reach, and what the worst pair of the rest has of its ports."""
    part, up = _parts(cables, switches), _up(cables)
    ports: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for cable in cables:
        if cable.a in hosts:
            share = min(up[cable.b] / whole[cable.b], 1.0) if whole[cable.b] else 1.0
            ports[cable.a].append((part[cable.b], share))
    # Hosts whose ports are in the same parts with the same shares are one kind: there are few kinds.
    kinds: dict[Kind, list[str]] = defaultdict(list)
    for host, own in ports.items():
        kinds[tuple(own)].append(host)
    joined = {kind: _joined(kind) for kind in kinds}

    def reached(kind: Kind) -> int:
        return sum(len(kinds[other]) for other in kinds if joined[kind] & joined[other] or kind == other)

    centre = max(kinds, key=reached)
    whole_ports = max(len(kind) for kind in kinds)
    in_touch = [kind for kind in kinds if kind == centre or joined[kind] & joined[centre]]
    out = chain.from_iterable(kinds[kind] for kind in kinds if kind not in in_touch)
    shares = []
    for kind, other in product(in_touch, kinds):
        if other in in_touch and (kind != other or len(kinds[kind]) > 1):
            shares.append(sum(share for name, share in kind if name in joined[other]) / whole_ports)
    return sorted({*out, *(set(hosts) - set(ports))}, key=natural_key), min(shares, default=1.0)


def _joined(kind: Kind) -> set[str]:
    """Return the parts of the fabric that the ports of a kind of host are in."""
    return {name for name, share in kind if share}


def _parts(cables: Iterable[Cable], switches: Collection[str]) -> dict[str, str]:
    """Return for each switch the part of the fabric it is in, named after one of its switches."""
    part: dict[str, str] = {}
    links: dict[str, list[str]] = defaultdict(list)
    for cable in cables:
        part[cable.b] = ""
        if cable.a in switches:
            part[cable.a] = ""
            links[cable.a].append(cable.b)
            links[cable.b].append(cable.a)
    for start in part:
        todo = [] if part[start] else [start]
        while todo:
            name = todo.pop()
            if not part[name]:
                part[name] = start
                todo += links[name]
    return part


def _up(cables: Iterable[Cable]) -> Counter[str]:
    """Count the up-links of leaves."""
    return Counter(cable.a for cable in cables if cable.kind == "leaf_spine")
