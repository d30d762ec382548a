"""How long each cable is and what it is made of, from where its two ends stand.

Between racks a cable goes up to the tray, along it at right angles, and down again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from math import ceil
from typing import NamedTuple

from podwright.design.floor import Floor, RackPlace
from podwright.design.wiring import Cable
from podwright.spec import Racks, SwitchModel

UNIT_M = 0.0445
SLACK_IN_RACK_M = 0.5
SLACK_M = 1.5
SOLD_M = (
    *(0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0),
    *(10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 100.0),
)
# By speed in Gb/s: longest passive copper and longest active optical cable, where the switch's entry does not say.
REACH_M = {100: (5.0, 100.0), 200: (2.0, 100.0), 400: (2.0, 0.0)}
# Cables that come with their plugs on; fibre goes into transceivers.
ASSEMBLED = ("dac", "aoc", "cat6")


class Laid(NamedTuple):
    """A cable with its length and kind; None and `unknown` where an end has no known place."""

    cable: Cable
    length_m: float | None
    medium: str

    @property
    def metres(self) -> str:
        """Return its length as people read it; nothing where it is not known."""
        return "" if self.length_m is None else f"{self.length_m:g} m"


def lay(cables: Iterable[Cable], floor: Floor, racks: Racks, switch: SwitchModel) -> list[Laid]:
    """Return each cable with its length and kind."""
    media = _media(switch)
    places = floor.places
    laid = []
    for cable in cables:
        a, b = places.get(cable.a), places.get(cable.b)
        if a is None or b is None:
            laid.append(Laid(cable, None, "unknown"))
        else:
            length = sold(distance_m(a, b, racks))
            laid.append(Laid(cable, length, media(length)))
    return laid


def distance_m(a: RackPlace, b: RackPlace, racks: Racks) -> float:
    """Return the way of a cable with its slack."""
    if a.rack == b.rack:
        return abs(a.unit - b.unit) * UNIT_M + SLACK_IN_RACK_M
    vertical = (2 * racks.rack_units - a.unit - b.unit) * UNIT_M
    along = abs(a.column - b.column) * racks.pitch_m + abs(a.row - b.row) * racks.row_m
    return vertical + along + SLACK_M


def sold(length_m: float) -> float:
    """Return the shortest length that is sold; beyond the longest, fibre comes in tens of metres."""
    index = bisect_left(SOLD_M, length_m)
    if index == len(SOLD_M):
        return float(ceil(length_m / 10) * 10)
    return SOLD_M[index]


def _media(switch: SwitchModel) -> Callable[[float], str]:
    """Return the function that names, for a length, what the cable is made of."""
    if is_twisted(switch):
        return lambda length: "cat6"
    copper, active = reach_of(switch)

    def medium(length_m: float) -> str:
        if length_m <= copper:
            return "dac"
        if length_m <= active:
            return "aoc"
        return "fibre"

    return medium


def is_twisted(switch: SwitchModel) -> bool:
    """Return whether the ports of a switch take twisted pair."""
    return switch.kind == "ethernet" and (switch.speed_gbps or 0) <= 10


def reach_of(switch: SwitchModel) -> tuple[float, float]:
    """Return the longest copper and the longest active optical cable of a switch."""
    speed = switch.speed_gbps or 200
    copper, active = REACH_M[next((gbps for gbps in REACH_M if gbps >= speed), 400)]
    if switch.copper_m is not None:
        copper = switch.copper_m
    if switch.active_m is not None:
        active = switch.active_m
    return copper, active
