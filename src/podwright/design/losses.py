"""What is left of a pod when devices are lost: what nothing reaches any more, and the bandwidth of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from podwright.design.management_tiers import SITE
from podwright.spec.hostlist import fold_hosts, natural_key
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.design.plan import Blueprint
    from podwright.design.wiring import Cable

FABRICS = ("compute", "storage")
# Cables between the switches of the management network, and to the site's.
JOINING = ("uplink", "peer", "site")


@dataclass(frozen=True, slots=True)
class Loss:
    """Devices that are lost; by network the devices that are cut off from it, and what the others have left of it.

    `bmc` are baseboard controllers out of reach, `management` devices that no other port of the management network
    reaches either.
    """

    lost: tuple[str, ...]
    cut_off: dict[str, list[str]]
    bandwidth_left: dict[str, float]

    @property
    def hosts(self) -> set[str]:
        """Return the devices whose runs feel it: lost, or cut off from the nodes beside them or their storage."""
        return {*self.lost, *chain.from_iterable(self.cut_off.get(fabric, ()) for fabric in FABRICS)}

    def as_json(self, runs: Sequence[str] = ()) -> dict[str, Any]:
        """Return the document of `predict --lost`; `runs` are those at work on what is lost or cut off."""
        left = {name: round(share, 4) for name, share in self.bandwidth_left.items()}
        return {"lost": list(self.lost), "cut_off": self.cut_off, "bandwidth_left": left, "runs": list(runs)}


def lose(design: Blueprint, names: Iterable[str]) -> Loss:
    """Return what is left without these devices, or refuse a name that the plan does not have."""
    lost = tuple(dict.fromkeys(names))
    known = {*design.floor.places, *(cable.a for cable in design.cables), *(cable.b for cable in design.cables)}
    for name in lost:
        if name not in known or name == SITE:
            hint = did_you_mean(name, sorted(known - {SITE}), "`podwright design --cables` prints every device")
            raise refuse(f"{name} is no device of the plan", hint=hint, field="--lost")
    gone = set(lost)
    cut_off: dict[str, list[str]] = {}
    left: dict[str, float] = {}
    for fabric, wired in design.wired.items():
        own = {switch.name for switch in wired.switches}
        whole, after = (_shares(wired.cables, own, out) for out in (frozenset[str](), gone))
        beside = _largest(wired.cables, own, gone)
        cut_off[fabric] = _sorted(name for name in whole if name not in gone and name not in beside)
        shares = [after.get(name, 0.0) / whole[name] for name in whole if name in beside and name not in gone]
        left[fabric] = min(shares, default=0.0)
    if design.management is not None:
        cut_off |= _unmanaged(design.management.cables, gone)
    return Loss(lost, cut_off, left)


def _unmanaged(cables: Sequence[Cable], gone: Collection[str]) -> dict[str, list[str]]:
    """Return the baseboard controllers, and the devices, that the site's network no longer reaches."""
    between = [cable for cable in cables if cable.kind in JOINING]
    reached = _reach(_links(between, gone), SITE)
    ways: dict[str, bool] = dict.fromkeys([cable.a for cable in between], False)
    ways |= dict.fromkeys(reached, True)
    bmcs: list[str] = []
    for cable in cables:
        if cable.kind == "bmc" and cable.b not in reached:
            bmcs.append(cable.a)
        elif cable.kind not in ("bmc", *JOINING):
            ways[cable.a] = ways.get(cable.a, False) or cable.b in reached
    out = [name for name, is_reached in ways.items() if not is_reached and name not in gone]
    return {"bmc": _sorted(name for name in bmcs if name not in gone), "management": _sorted(out)}


def _shares(cables: Iterable[Cable], switches: Collection[str], gone: Collection[str]) -> dict[str, float]:
    """Return for each device of a fabric its ports in parts: of each, how much of the way up to the top is left.

    A switch at the top has no way up and needs none.
    """
    up: dict[str, list[str]] = defaultdict(list)
    ports: list[Cable] = []
    for cable in cables:
        if cable.a in switches:
            up[cable.a].append(cable.b)
        else:
            ports.append(cable)
    known: dict[str, float] = dict.fromkeys(gone, 0.0)

    def climb(switch: str) -> float:
        if switch not in known:
            above = Counter(up[switch])
            whole = sum(above.values())
            known[switch] = sum(count * climb(name) for name, count in above.items()) / whole if whole else 1.0
        return known[switch]

    shares: dict[str, float] = defaultdict(float)
    for cable in ports:
        shares[cable.a] += 0.0 if cable.a in gone else climb(cable.b)
    return dict(shares)


def _largest(cables: Iterable[Cable], switches: Collection[str], gone: Collection[str]) -> set[str]:
    """Return the largest part of a fabric whose devices still reach each other, through switches alone."""
    links = _links(cables, gone)
    best: set[str] = set()
    seen: set[str] = set()
    for start in links:
        if start not in seen:
            part = _reach(links, start)
            seen |= part
            best = max(best, part, key=lambda names: len(names - set(switches)))
    return best


def _links(cables: Iterable[Cable], gone: Collection[str]) -> dict[str, list[str]]:
    """Return what each device is joined to."""
    links: dict[str, list[str]] = defaultdict(list)
    for cable in cables:
        if cable.a not in gone and cable.b not in gone:
            links[cable.a].append(cable.b)
            links[cable.b].append(cable.a)
    return links


def _reach(links: Mapping[str, Iterable[str]], start: str) -> set[str]:
    seen, todo = {start}, [start]
    while todo:
        for name in links.get(todo.pop(), ()):
            if name not in seen:
                seen.add(name)
                todo.append(name)
    return seen


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(set(names), key=natural_key)


def leaf_losses(cables: Iterable[Cable]) -> dict[str, dict[str, str]]:
    """Return for each management switch that devices hang on what its loss cuts off: devices, and their BMCs."""
    ways: dict[str, set[str]] = defaultdict(set)
    bmcs: dict[str, list[str]] = defaultdict(list)
    for cable in cables:
        if cable.kind == "bmc":
            bmcs[cable.b].append(cable.a)
        elif cable.kind not in JOINING:
            ways[cable.a].add(cable.b)
    alone: dict[str, list[str]] = defaultdict(list)
    for device, switches in ways.items():
        if len(switches) == 1:
            alone[next(iter(switches))].append(device)
    names = sorted({*alone, *bmcs}, key=natural_key)
    return {name: {"management": fold_hosts(alone[name]), "bmc": fold_hosts(bmcs[name])} for name in names}
