"""Racks of NVLink domains: what stands in each beside its nodes, what it may draw, and what of it is managed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import ceil

from podwright.design.domains import NVLINK_SWITCH, PARTS, POWER_SHELF, all_parts, part_names
from podwright.design.floor import FEEDS, Device, Floor
from podwright.design.requirements import Requirements
from podwright.spec.hardware import NvlinkDomain
from podwright.spec.problems import refuse


def add_parts(requirements: Requirements, blocks: Iterable[list[list[Device]]]) -> None:
    """Put what belongs to NVLink domains into their racks: switches among the nodes, shelves above and below.

    A rack that is not full keeps the places of its nodes.
    """
    domain = requirements.domain
    if domain is None:
        return
    for number, rack in enumerate(chain.from_iterable(blocks)):
        if not rack:
            continue
        trays = [*rack, *[replace(rack[0], name="")] * (domain.nodes - len(rack))]
        half, low = domain.power_shelves // 2, (domain.nodes - 1) // 2
        shelves, switches = (_devices(domain, number, kind) for kind in (POWER_SHELF, NVLINK_SWITCH))
        rack[:] = [*shelves[:half], *trays[:low], *switches, *trays[low:], *shelves[half:]]


def _devices(domain: NvlinkDomain, number: int, kind: str) -> list[Device]:
    """Return the parts of a kind: their power and weight are in those of the nodes."""
    return [Device(name, kind, PARTS[kind][1], 1, 0.0, 0.0) for name in part_names(domain, number, kind)]


def has_shelves(devices: Iterable[Device]) -> bool:
    """Return whether a rack is that of an NVLink domain: its shelves are its power feeds."""
    return any(device.kind == POWER_SHELF for device in devices)


def names_of_parts(devices: Iterable[Device]) -> Iterator[str]:
    """Yield the names of what belongs to the NVLink domain of a rack."""
    yield from (device.name for device in devices if device.kind in PARTS)


def rack_limit_w(requirements: Requirements, devices: Iterable[Device]) -> float:
    """Return what a rack may draw.

    That of an NVLink domain for which the pod sets no limit may draw what half of its shelves give.
    """
    domain, allowed = requirements.domain, requirements.pod.racks
    if domain is None or allowed.power_w or allowed.cooling_w or not has_shelves(devices):
        return allowed.limit_w
    return (domain.shelf_power_w or 0) * domain.power_shelves / FEEDS or allowed.limit_w


def feed_notes(floor: Floor) -> list[str]:
    """Return a word on racks of NVLink domains that one of their two feeds does not carry alone."""
    for rack in floor.racks:
        if has_shelves(device for _, device in rack.devices) and rack.headroom_w < 0:
            drawn, fed = rack.power_w / 1000, rack.limit_w / 1000
            return [
                f"an NVLink domain draws {drawn:.1f} kW, and half of its power shelves give {fed:.1f} kW: "
                "without one of two feeds it must draw less"
            ]
    return []


def check_domain(requirements: Requirements, nodes: Sequence[Device]) -> None:
    """Refuse racks that are too low, or are fed with too little, for an NVLink domain."""
    domain, allowed = requirements.domain, requirements.pod.racks
    if domain is None:
        return
    for node in {node.model: node for node in nodes}.values():
        height = domain.nodes * node.rack_units + domain.switches + domain.power_shelves
        power_w = domain.nodes * (node.power_w or 0)
        if height > allowed.rack_units:
            raise refuse(
                f"an NVLink domain of {node.model} is {height} rack units high, and a rack has {allowed.rack_units}",
                hint=f"use racks with at least {height} units",
                field="racks.rack_units",
            )
        if (allowed.power_w or allowed.cooling_w) and power_w > allowed.limit_w:
            raise refuse(
                f"an NVLink domain of {node.model} draws {power_w:,.0f} W, and a rack takes {allowed.limit_w:,.0f} W",
                hint=f"racks that take {ceil(power_w / 1000)}kW hold one each",
                field="racks.power",
            )


def parts_of_unit(requirements: Requirements, unit: int) -> list[str]:
    """Return what stands beside the nodes of a unit (from 1); what is not there has no name, and keeps a port."""
    domain = requirements.domain
    if domain is None or not unit:
        return []
    each = ceil(requirements.unit / domain.nodes)
    first, there = (unit - 1) * each, requirements.domains_there
    names: list[str] = []
    for number in range(first, min(first + each, requirements.domains_planned)):
        parts = all_parts(domain, number)
        names += parts if number in there else [""] * len(parts)
    return names


def parts_later(requirements: Requirements, units: int) -> int:
    """Count the parts of domains that come with later units than the first so many."""
    domain = requirements.domain
    if domain is None:
        return 0
    each = ceil(requirements.unit / domain.nodes)
    later = max(requirements.domains_planned - units * each, 0)
    return later * (domain.switches + domain.power_shelves)
