"""The racks of a pod with what stands in them: places, power, heat and weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from podwright.design.domains import NVLINK_SWITCH, POWER_SHELF

CABLE_MANAGER = "cable manager"
# A watt that is drawn is a watt of heat, which those who cool a hall count in British thermal units for each hour.
BTU_H = 3.412
KG_OF_TONNE = 1000
# Every rack has a power feed A and a power feed B, each of which can carry all of it.
FEEDS = 2


@dataclass(frozen=True, slots=True)
class Device:
    """Something in a rack; a power or weight that nobody published is None and counts as nothing."""

    name: str
    kind: str
    model: str
    rack_units: int
    power_w: float | None
    weight_kg: float | None = None
    heat_btu_h: float | None = None

    @property
    def heat(self) -> float:
        """Return what is known of its heat in BTU/h: what its maker says, else that of its power."""
        return self.heat_btu_h or (self.power_w or 0) * BTU_H

    @property
    def is_switch(self) -> bool:
        """Return whether it is a switch, whose cables want a manager beside it."""
        return self.kind not in ("node", "storage", "manager", CABLE_MANAGER, NVLINK_SWITCH, POWER_SHELF)


class RackPlace(NamedTuple):
    """Where a device stands: its rack, the lowest rack unit it takes (from 1), and the rack's place on the floor."""

    rack: str
    unit: int
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Rack:
    """One rack with its devices, lowest first, and the most power that it may draw."""

    name: str
    row: int
    column: int
    devices: tuple[tuple[int, Device], ...]
    limit_w: float

    @property
    def headroom_w(self) -> float:
        """Return what each of its two feeds has left when it carries the rack alone."""
        return self.limit_w - self.power_w

    @property
    def heat_btu_h(self) -> float:
        """Return what is known of its heat."""
        return sum(device.heat for _, device in self.devices)

    @property
    def power_w(self) -> float:
        """Return what is known of its power."""
        return sum(device.power_w or 0 for _, device in self.devices)

    @property
    def weight_kg(self) -> float:
        """Return what is known of the weight of its devices, without the rack and its cables."""
        return sum(device.weight_kg or 0 for _, device in self.devices)

    @property
    def short_power(self) -> str:
        """Return its power in the fewest words; none where nothing is known of it."""
        if not self.power_w:
            return ""
        unknown = any(device.power_w is None for _, device in self.devices if device.kind != CABLE_MANAGER)
        return f"{'over ' * unknown}{self.power_w / 1000:.1f} kW"

    @property
    def facts(self) -> str:
        """Return its power, heat and weight as people read them: at least so much where some of it is not known."""
        devices = [device for _, device in self.devices if device.kind != CABLE_MANAGER]
        power, weight = "power not known", "weight not known"
        if self.power_w:
            text = f"{self.power_w / 1000:,.1f} kW ({self.heat_btu_h:,.0f} BTU/h)"
            power = _at_least(text, any(device.power_w is None for device in devices))
        if self.weight_kg:
            weight = _at_least(f"{self.weight_kg:,.0f} kg", any(device.weight_kg is None for device in devices))
        return f"{power}, {weight}"

    @property
    def used_units(self) -> int:
        """Return the rack units that are taken."""
        return sum(device.rack_units for _, device in self.devices)


@dataclass(frozen=True, slots=True)
class Floor:
    """All racks, and where each device stands.

    `slots` are the places for racks, of which some are kept free; `pdus` are the power distribution units, which take
    no rack units, with their numbers among those of all slots.
    """

    racks: list[Rack]
    places: dict[str, RackPlace]
    unknown_power: tuple[str, ...]
    unknown_weight: tuple[str, ...]
    slots: int
    pdus: dict[str, int]

    @property
    def devices(self) -> list[Device]:
        """Return everything that stands in the racks."""
        return devices_of(self.racks)

    @property
    def power_w(self) -> float:
        """Return what is known of the power of all racks."""
        return sum(rack.power_w for rack in self.racks)

    @property
    def power_text(self) -> str:
        """Return the power of all racks as people read it: at least so much where some of it is not known."""
        if not self.power_w:
            return "power not known"
        return _at_least(f"{self.power_w / 1000:,.1f} kW in all", bool(self.unknown_power))

    @property
    def weight_kg(self) -> float:
        """Return what is known of the weight of all devices."""
        return sum(rack.weight_kg for rack in self.racks)

    @property
    def weight_text(self) -> str:
        """Return the weight of all devices as people read it."""
        text = f"{self.weight_kg:,.0f} kg"
        if self.weight_kg >= KG_OF_TONNE:
            text = f"{self.weight_kg / KG_OF_TONNE:,.1f} t"
        return _at_least(text, bool(self.unknown_weight))

    @property
    def heat_text(self) -> str:
        """Return the heat of all racks as people read it."""
        heat = sum(device.heat for device in self.devices)
        return _at_least(f"{heat:,.0f} BTU/h", bool(self.unknown_power))

    @property
    def cable_managers(self) -> int:
        """Count the cable managers."""
        return sum(device.kind == CABLE_MANAGER for device in self.devices)

    def rack_and_unit(self, device: str) -> tuple[str, int | str]:
        """Return a device's rack and rack unit as tables write them; both are empty where it has no place."""
        place = self.places.get(device)
        if place is None:
            return "", ""
        return place.rack, place.unit

    def spot(self, device: str) -> str:
        """Return where a device stands as people read it; nothing where it has no place."""
        rack, unit = self.rack_and_unit(device)
        return f"{rack} U{unit}" if rack else ""


def feed_names(rack: str) -> tuple[str, ...]:
    """Return the names of the power distribution units of a rack: one for each feed."""
    return tuple(f"pdu-{rack}-{feed}" for feed in "ab")


def devices_of(racks: Iterable[Rack]) -> list[Device]:
    """Return everything that stands in some racks."""
    devices: list[Device] = []
    for rack in racks:
        devices += [device for _, device in rack.devices]
    return devices


def _at_least(text: str, is_partial: bool) -> str:
    return f"at least {text}" if is_partial else text
