"""What joins the ports: transceivers, straight cables, twin cables and splitters, counted cage by cage.

A cage takes one plug, whatever the number of its ports. Copper therefore joins a twin cage to one other twin cage, or
splits it to two cages of one port each; everything else that shares a cage is fibre between transceivers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podwright.design.lengths import ASSEMBLED, Laid
from podwright.design.sockets import Socket, Sockets
from podwright.design.wiring import Cable
from podwright.spec.hardware_library import Plug, plug_part

TWIN = 2
# By speed in Gb/s: how far a pair of transceivers reaches over each kind of fibre; nothing is named beyond the last.
MODES_M = {400.0: {"multimode": 50.0, "single-mode": 100.0}, 800.0: {"single-mode": 500.0}}
# A cage whose optics are in the switch takes the fibre itself.
OPTICS_INSIDE = "mpo"

Cage = tuple[str, str]


class CablePart(NamedTuple):
    """Something to buy: its kind, fabric and medium, in words, and how many ports one of it is plugged into."""

    kind: str
    fabric: str
    medium: str
    length_m: float | None
    text: str
    ends: int


@dataclass(frozen=True, slots=True)
class CageGroup:
    """Cables whose cages hang together, and those cages with their sockets in use."""

    cables: tuple[Laid, ...]
    cages: Mapping[Cage, tuple[Socket, ...]]

    @property
    def is_assembled(self) -> bool:
        """Return whether one cable with fixed plugs joins all of its cages."""
        if any(laid.medium not in ASSEMBLED for laid in self.cables):
            return False
        widths = sorted(sockets[0].ports for sockets in self.cages.values())
        if widths == [1, 1]:
            return True
        if len(self.cables) != TWIN:
            return False
        return widths in ([TWIN, TWIN], [1, 1, TWIN])

    @property
    def is_shared(self) -> bool:
        """Return whether several links share one cable with fixed plugs."""
        return len(self.cables) > 1 and self.is_assembled

    @property
    def longest_m(self) -> float | None:
        """Return the length of its longest cable; None where one is not known."""
        lengths = [laid.length_m for laid in self.cables if laid.length_m is not None]
        return max(lengths) if len(lengths) == len(self.cables) else None


def join(laid: Iterable[Laid], sockets: Sockets) -> list[CageGroup]:
    """Return the cables in groups whose cages hang together, in the order of their first cables."""
    cables = list(laid)
    ends = [sockets.ends(each.cable) for each in cables]
    roots = _Roots()
    for a, b in ends:
        roots.unite(a.plug, b.plug)
    groups: dict[Cage, list[int]] = defaultdict(list)
    for index, (a, _) in enumerate(ends):
        groups[roots.find(a.plug)].append(index)
    joined = []
    for members in groups.values():
        cages: dict[Cage, list[Socket]] = defaultdict(list)
        for index in members:
            for socket in ends[index]:
                cages[socket.plug].append(socket)
        used = {cage: tuple(sockets_used) for cage, sockets_used in cages.items()}
        joined.append(CageGroup(tuple(cables[index] for index in members), used))
    return joined


class _Roots:
    """Which things hang together: each has a root, and those with one root are one group."""

    def __init__(self) -> None:
        self._above: dict[Cage, Cage] = {}

    def find(self, cage: Cage) -> Cage:
        root = cage
        while (above := self._above.get(root, root)) != root:
            root = above
        self._above[cage] = root
        return root

    def unite(self, a: Cage, b: Cage) -> None:
        self._above[self.find(b)] = self.find(a)


def settle(laid: Iterable[Laid], sockets: Sockets) -> list[Laid]:
    """Return the cables with copper where the cages allow it, and fibre in its place where they do not.

    Links that share a cable are as long as the longest of them.
    """
    settled: dict[Laid, Laid] = {}
    cables = list(laid)
    for group in join(cables, sockets):
        if group.is_shared:
            settled |= {each: each._replace(length_m=group.longest_m) for each in group.cables}
        elif not group.is_assembled:
            settled |= {each: each._replace(medium="fibre") for each in group.cables if each.medium in ASSEMBLED}
    return [settled.get(each, each) for each in cables]


def parts(groups: Iterable[CageGroup], sockets: Sockets, speeds_gbps: Mapping[str, float]) -> Counter[CablePart]:
    """Count what to buy for settled cables; the speed of a fabric's ports names their transceivers."""
    counted: Counter[CablePart] = Counter()
    for group in groups:
        fabric = group.cables[0].cable.fabric
        gbps = speeds_gbps.get(fabric, 0.0)
        named = Plug("", "both", "", 1, gbps, "copper", _kind(group, sockets))
        if group.is_assembled:
            counted[_assembled(group, fabric, named)] += 1
            continue
        named = named._replace(mode=_mode(group.longest_m, gbps))
        counted.update(_cable(each, named) for each in group.cables)
        counted.update(_transceivers(group, sockets, named))
    return counted


def fibre_modes(groups: Iterable[CageGroup], speeds_gbps: Mapping[str, float]) -> dict[Cable, str]:
    """Return which kind of fibre each link of settled cables is, where it is told apart."""
    modes: dict[Cable, str] = {}
    for group in groups:
        mode = _mode(group.longest_m, speeds_gbps.get(group.cables[0].cable.fabric, 0.0))
        if mode and not group.is_assembled:
            modes |= {laid.cable: mode for laid in group.cables if laid.medium == "fibre"}
    return modes


def _kind(group: CageGroup, sockets: Sockets) -> str:
    """Return whether a group of cages is of InfiniBand or of Ethernet: that of its switch."""
    return next((kind for device, _ in group.cages if (kind := sockets.kind_of(device))), "")


def _assembled(group: CageGroup, fabric: str, plug: Plug) -> CablePart:
    """Name one cable with fixed plugs: straight, twin, or from a twin cage to two others."""
    medium, length = group.cables[0].medium, group.longest_m
    widths = {sockets[0].ports: sockets[0] for sockets in group.cages.values()}
    what, noun = "cable", "cable"
    if len(widths) > 1:
        what, noun = "splitter", "splitter cable"
    if len(group.cables) == 1:
        return CablePart("cable", fabric, medium, length, f"{fabric} {noun}, {medium}, {length:g} m", 2)
    far = widths[min(widths)]
    name = plug_part(plug._replace(what=what, connector=far.connector, ports=far.ports))
    kind = "twin-port" if what == "cable" else f"one to two {far.connector.upper() or 'cages'}"
    return CablePart(
        "cable", fabric, medium, length, f"{fabric} {noun}, {medium}, {kind}, {length:g} m{_named(name)}", 4
    )


def _cable(laid: Laid, plug: Plug) -> CablePart:
    fabric, medium, length = laid.cable.fabric, laid.medium, laid.length_m
    if length is None:
        return CablePart("cable", fabric, medium, None, f"{fabric} cable, length not known", 2)
    text, name = f"{fabric} cable, {medium}", ""
    if medium == "fibre" and plug.mode:
        text += f", {plug.mode}"
        name = plug_part(plug._replace(what="cable"))
    return CablePart("cable", fabric, medium, length, f"{text}, {length:g} m{_named(name)}", 2)


def _transceivers(group: CageGroup, sockets: Sockets, plug: Plug) -> Iterable[CablePart]:
    """Yield one transceiver for each cage that a fibre ends in, but for those with optics of their own."""
    fabric = group.cables[0].cable.fabric
    ends: set[Cage] = set()
    for each in group.cables:
        if each.medium == "fibre":
            ends.update(socket.plug for socket in sockets.ends(each.cable))
    for cage in ends:
        socket = group.cages[cage][0]
        if socket.connector == OPTICS_INSIDE:
            continue
        where = "switch" if sockets.is_switch(socket.device) else "node"
        one = Plug("transceiver", where, socket.connector, socket.ports, plug.gbps, plug.mode, plug.kind)
        name, gbps = plug_part(one), f"{plug.gbps:g} Gb/s"
        speed = gbps if socket.ports == 1 else f"{socket.ports}x{gbps}"
        facts = [f"{fabric} transceiver", socket.connector.upper(), speed, plug.mode, f"in a {where}"]
        text = ", ".join(filter(None, facts)) + _named(name)
        yield CablePart("transceiver", fabric, "transceiver", None, text, socket.ports)


def _mode(length_m: float | None, gbps: float) -> str:
    """Return the fibre that a group of cages needs; nothing where it is not told apart, or not known."""
    if length_m is None:
        return ""
    return next((mode for mode, reach in MODES_M.get(gbps, {}).items() if length_m <= reach), "")


def _named(name: str) -> str:
    return f" ({name})" if name else ""
