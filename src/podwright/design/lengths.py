"""How long each cable is and what it is made of, from where its two ends stand.

Between racks a cable goes up to the tray, along it at right angles, and down again.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from podwright.design.racks import Floor, Place
from podwright.design.wiring import Cable
from podwright.spec import SwitchModel
from podwright.spec._pod import Racks

UNIT_M = 0.0445
SLACK_IN_RACK_M = 0.5
SLACK_M = 1.5
SOLD_M = (0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 100)
# By speed in Gb/s: longest passive copper and longest active optical cable, where the switch's entry does not say.
REACH_M = {100: (5.0, 100.0), 200: (2.0, 100.0), 400: (2.0, 0.0)}


class Laid(NamedTuple):
    """A cable with its length and kind; None and `unknown` where an end has no known place."""

    cable: Cable
    length_m: float | None
    medium: str


def lay(cables: Iterable[Cable], floor: Floor, racks: Racks, switch: SwitchModel) -> list[Laid]:
    """Gives each cable its length and kind; equal pairs of places are worked out once."""
    copper, active = reach_of(switch)
    known: dict[tuple[Place, Place], tuple[float | None, str]] = {}
    laid = []
    for cable in cables:
        a, b = floor.places.get(cable.a), floor.places.get(cable.b)
        if a is None or b is None:
            laid.append(Laid(cable, None, "unknown"))
            continue
        found = known.get((a, b))
        if found is None:
            length = sold(distance_m(a, b, racks))
            medium = "dac" if length <= copper else "aoc" if length <= active else "fibre"
            found = known[(a, b)] = (length, "cat6" if is_twisted(switch) else medium)
        laid.append(Laid(cable, *found))
    return laid


def distance_m(a: Place, b: Place, racks: Racks) -> float:
    """Gives the way of a cable with its slack."""
    if a.rack == b.rack:
        return abs(a.unit - b.unit) * UNIT_M + SLACK_IN_RACK_M
    vertical = (2 * racks.rack_units - a.unit - b.unit) * UNIT_M
    along = abs(a.column - b.column) * racks.pitch_m + abs(a.row - b.row) * racks.row_m
    return vertical + along + SLACK_M


def sold(length_m: float) -> float:
    """Gives the shortest length that is sold; beyond the longest, fibre comes in tens of metres."""
    return next((float(one) for one in SOLD_M if one >= length_m), float(ceil(length_m / 10) * 10))


def is_twisted(switch: SwitchModel) -> bool:
    """Says whether the ports of a switch take twisted pair."""
    return switch.kind == "ethernet" and (switch.speed_gbps or 0) <= 10


def reach_of(switch: SwitchModel) -> tuple[float, float]:
    """Gives the longest copper and the longest active optical cable of a switch."""
    speed = switch.speed_gbps or 200
    copper, active = REACH_M[next((known for known in REACH_M if known >= speed), 400)]
    return (
        switch.copper_m if switch.copper_m is not None else copper,
        switch.active_m if switch.active_m is not None else active,
    )
