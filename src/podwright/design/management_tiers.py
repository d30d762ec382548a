"""The switches above those that devices hang on: two planes of trees, joined in pairs, with the site's network on top.

Each switch keeps its last two ports: one for its peer in the other plane, one for the tier above, or for the site.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil

from podwright.design.wiring import Cable, Switch

PLANES = (0, 1)
# Kept on each switch for its peer, and for the tier above or the site's network.
KEPT_PORTS = 2
# The far end of what leaves the pod: it is no device of the pod, and has no place.
SITE = "site-network"
# Fewer ports would leave a tier as many switches as the one below it.
LEAST_PORTS = KEPT_PORTS + 2

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tiers:
    """The tiers above the leaves: the ports of a switch, and the planned places of what is below, in each plane.

    A place is a plane and a number, both from 0; tiers count from 0 upwards.
    """

    ports: int
    planned: int

    @property
    def width(self) -> int:
        """Return the ports of a switch for what is below it."""
        return self.ports - KEPT_PORTS

    @property
    def pairs(self) -> list[int]:
        """Return the pairs of switches of each tier when all that is planned is there, lowest first."""
        pairs = [ceil(self.planned / self.width)]
        while pairs[-1] > 1:
            pairs.append(ceil(pairs[-1] / self.width))
        return pairs

    @property
    def every(self) -> list[Place]:
        """Return all places of the lowest tier as planned, each a plane and an index."""
        return list(product(PLANES, range(self.planned)))

    def port(self, plane: int, index: int) -> tuple[str, int]:
        """Return the switch and the port of a place of the lowest tier."""
        number, port = divmod(index, self.width)
        return tier_name(0, plane, number), port + 1

    def present(self, indexes: Iterable[Place]) -> list[set[Place]]:
        """Return the switches of each tier that are above these ports, each a plane and an index."""
        tiers = [{(plane, index // self.width) for plane, index in indexes}]
        for _ in self.pairs[1:]:
            tiers.append({(plane, number // self.width) for plane, number in tiers[-1]})
        return tiers

    def cables(self, present: list[set[Place]]) -> Iterator[Cable]:
        """Yield what joins the switches: peers, tiers, and on top the site's network."""
        for tier, places in enumerate(present):
            for plane, number in sorted(places):
                name = tier_name(tier, plane, number)
                if plane == 0 and (1, number) in places:
                    peer = tier_name(tier, 1, number)
                    yield Cable("management", "peer", name, self.ports - 1, peer, self.ports - 1)
                if tier + 1 == len(present):
                    yield Cable("management", "site", name, self.ports, SITE, plane + 1)
                else:
                    upper, port = divmod(number, self.width)
                    yield Cable("management", "uplink", name, self.ports, tier_name(tier + 1, plane, upper), port + 1)


def tier_switches(present: list[set[Place]]) -> list[Switch]:
    """Return the switches of these tiers, numbered tier by tier."""
    switches: list[Switch] = []
    for tier, places in enumerate(present):
        names = sorted(tier_name(tier, *place) for place in places)
        word = "core" if tier else "aggregation"
        switches += [Switch(name, "management", word, 0, 0, number) for number, name in enumerate(names, 1)]
    return switches


def tier_name(tier: int, plane: int, number: int) -> str:
    """Return the name of a switch."""
    word = ("agg", "core")[tier] if tier < 2 else f"core{tier}"
    return f"mg-{word}-{plane + 1}-{number + 1:02d}"
