"""Where everything stands: nodes, switches and storage in racks, within power, cooling and height.

A scalable unit has racks of its own, with its leaves in the middle of them; spines, cores, storage and management hosts
stand in the middle of the floor. The floor is laid out for the nodes that are planned, so that growth moves no rack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from operator import itemgetter
from typing import NamedTuple

from podwright.design.requirements import Requirements
from podwright.design.topology import slot_of
from podwright.design.wiring import Switch
from podwright.spec import SwitchModel
from podwright.spec.problems import Refusal, refuse


@dataclass(frozen=True, slots=True)
class Device:
    """Something in a rack; a power that nobody published is None and counts as nothing."""

    name: str
    kind: str
    model: str
    rack_units: int
    power_w: float | None


class RackPlace(NamedTuple):
    """Where a device stands: its rack, the lowest rack unit it takes (from 1), and the rack's place on the floor."""

    rack: str
    unit: int
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Rack:
    """One rack with its devices, lowest first."""

    name: str
    row: int
    column: int
    devices: tuple[tuple[int, Device], ...]

    @property
    def power_w(self) -> float:
        """Return what is known of its power."""
        return sum(device.power_w or 0 for _, device in self.devices)

    @property
    def used_units(self) -> int:
        """Return the rack units that are taken."""
        return sum(device.rack_units for _, device in self.devices)


@dataclass(frozen=True, slots=True)
class Floor:
    """All racks, and where each device stands."""

    racks: list[Rack]
    places: dict[str, RackPlace]
    unknown_power: tuple[str, ...]

    @property
    def power_w(self) -> float:
        """Return what is known of the power of all racks."""
        return sum(rack.power_w for rack in self.racks)

    @property
    def power_text(self) -> str:
        """Return the power of all racks as people read it: at least so much where some of it is not known."""
        known = f"{self.power_w / 1000:,.1f} kW"
        return f"at least {known}" if self.unknown_power else known

    def rack_and_unit(self, device: str) -> tuple[str, int | str]:
        """Return a device's rack and rack unit as tables write them; both are empty where it has no place."""
        place = self.places.get(device)
        if place is None:
            return "", ""
        return place.rack, place.unit


@dataclass(frozen=True, slots=True)
class _Limits:
    """What one rack takes."""

    rack_units: int
    power_w: float


def lay_out(requirements: Requirements, switches: Sequence[Switch], central: Sequence[Switch]) -> Floor:
    """Place all devices, or refuse a device that no rack can take and racks that are too few.

    `central` are the management switches that stand in the middle when all planned nodes are there.
    """
    given = requirements.pod.racks
    limits = _Limits(given.rack_units, given.limit_w)
    nodes = [_node(requirements, host) for host in requirements.hosts]
    leaves = [(unit, _switch(requirements, switch)) for unit, switch in _leaf_units(requirements, switches)]
    around = _around(requirements, switches, central)
    for device in [*nodes, *(device for _, device in leaves), *around]:
        _check(device, limits)
    slots = _rows(requirements, limits, nodes, leaves, around)
    there = {*requirements.models, *(switch.name for switch in switches)}
    there |= {f"ufm{i + 1}" for i in range(requirements.managers)}
    for system in requirements.systems:
        there.update(system.names)
    floor = _number(requirements, slots, there)
    if given.count is not None and len(floor.racks) > given.count:
        raise _too_few(requirements, limits, len(floor.racks))
    return floor


def _rows(
    requirements: Requirements,
    limits: _Limits,
    nodes: list[Device],
    leaves: list[tuple[int, Device]],
    around: list[Device],
) -> list[list[Device]]:
    """Return the racks in the order in which they stand; empty ones are kept free for what is planned."""
    units, unit = requirements.units_planned, requirements.unit
    by_unit: list[list[Device]] = [[] for _ in range(units)]
    for number, device in leaves:
        by_unit[number].append(device)
    if units == 1:
        by_unit[0], around = around + by_unit[0], []
        planned = [*by_unit[0], *nodes, *nodes[:1] * (requirements.planned - len(nodes))]
        if len(_pack(planned, limits)) == 1:
            # A pod that fits one rack is not torn apart.
            return [[*by_unit[0], *nodes]]
    width = min((len(_pack([node] * unit, limits)[0]) for node in _kinds(nodes)), default=1)
    node_racks = ceil(min(unit, requirements.planned + requirements.reserved) / width)
    most = max((len(_pack(devices, limits)) for devices in by_unit), default=0)
    slots = 0 if requirements.is_classic else min(unit, requirements.planned + requirements.reserved)
    blocks = [_empty_racks(node_racks) for _ in range(units)]
    for index, node in enumerate(nodes):
        number, place = divmod(slot_of(index, slots, requirements.reserved), unit)
        blocks[number][place // width].append(node)
    for number, block in enumerate(blocks):
        network = _pack(by_unit[number], limits)
        # Every unit keeps room for as many racks of leaves as the widest has, so that all units are laid out alike.
        block[node_racks // 2 : node_racks // 2] = network + _empty_racks(most - len(network))
    ordered = [*blocks[: units // 2], _pack(around, limits), *blocks[units // 2 :]]
    return list(chain.from_iterable(ordered))


def _empty_racks(count: int) -> list[list[Device]]:
    return [[] for _ in range(count)]


def _number(requirements: Requirements, slots: list[list[Device]], there: set[str]) -> Floor:
    """Name racks and give each device its place; what is not there yet leaves its place free."""
    racks: list[Rack] = []
    places: dict[str, RackPlace] = {}
    for index, devices in enumerate(slots):
        row, column = divmod(index, requirements.pod.racks.per_row)
        name = f"{_letters(row)}{column + 1:02d}"
        everything = _stack(devices, requirements.pod.racks.rack_units)
        stacked = [(unit, device) for unit, device in everything if device.name in there]
        places |= {device.name: RackPlace(name, unit, row, column) for unit, device in stacked}
        if stacked:
            racks.append(Rack(name, row, column, tuple(stacked)))
    unknown: set[str] = set()
    for rack in racks:
        unknown |= {device.model for _, device in rack.devices if device.power_w is None}
    return Floor(racks, places, tuple(sorted(unknown)))


def _stack(devices: Sequence[Device], height: int) -> list[tuple[int, Device]]:
    """Put what is heavy at the bottom and switches at the top, near the tray."""
    low, high = 1, height + 1
    stacked = []
    for device in devices:
        if device.kind in ("node", "storage", "manager"):
            stacked.append((low, device))
            low += device.rack_units
        else:
            high -= device.rack_units
            stacked.append((high, device))
    return sorted(stacked, key=itemgetter(0))


def _letters(row: int) -> str:
    """Name rows as spreadsheets name columns: A to Z, then AA."""
    text = ""
    row += 1
    while row:
        row, letter = divmod(row - 1, 26)
        text = chr(ord("A") + letter) + text
    return text


def _pack(devices: Iterable[Device], limits: _Limits) -> list[list[Device]]:
    """Fill racks in the order given."""
    racks: list[list[Device]] = [[]]
    height, power = 0, 0.0
    for device in devices:
        if height + device.rack_units > limits.rack_units or power + (device.power_w or 0) > limits.power_w:
            racks.append([])
            height, power = 0, 0.0
        racks[-1].append(device)
        height, power = height + device.rack_units, power + (device.power_w or 0)
    if not racks[0]:
        return []
    return racks


def _kinds(nodes: Iterable[Device]) -> list[Device]:
    return list({node.model: node for node in nodes}.values())


def _node(requirements: Requirements, host: str) -> Device:
    model = requirements.models[host]
    return Device(host, "node", model.name or "node", model.rack_units or 1, model.power_w)


def _switch(requirements: Requirements, switch: Switch) -> Device:
    model = switch_model(requirements, switch)
    return Device(
        switch.name, f"{switch.fabric} {switch.tier}", model_name(model), model.rack_units or 1, model.power_w
    )


def model_name(model: SwitchModel) -> str:
    """Return the library's name of a switch, or its ports where it has none."""
    return model.name or f"{model.ports}-port switch"


def switch_model(requirements: Requirements, switch: Switch) -> SwitchModel:
    """Return the model of a switch."""
    fabric = requirements.pod.management_fabric()
    model: SwitchModel | None = None
    if switch.fabric != "management":
        model = requirements.switch_of(switch.fabric)
    elif fabric is not None:
        model = fabric.aggregation if switch.tier == "aggregation" else fabric.switch
    assert model is not None, "a switch is only designed where its model is known"
    return model


def _leaf_units(requirements: Requirements, switches: Sequence[Switch]) -> list[tuple[int, Switch]]:
    """Return each leaf with the unit (from 0) whose nodes it serves; in a classic layout by its first port."""
    leaves = []
    for switch in switches:
        if switch.tier != "leaf" or _is_infra(switch):
            continue
        if switch.fabric == "storage" and requirements.storage is not None:
            number = min(
                (switch.unit - 1) * requirements.storage.unit // requirements.unit, requirements.units_planned - 1
            )
        elif switch.unit or requirements.compute is None:
            number = max(switch.unit - 1, 0)
        else:
            port = (switch.number - 1) * (requirements.compute.switch_ports // 2)
            number = port // requirements.compute.node_ports // requirements.unit
        leaves.append((number, switch))
    return leaves


def _is_infra(switch: Switch) -> bool:
    """Return whether it is a management switch that serves what is no node."""
    return switch.fabric == "management" and switch.plane == 2


def _around(requirements: Requirements, switches: Sequence[Switch], central: Sequence[Switch]) -> list[Device]:
    """Return what belongs to no unit, as planned: management hosts, managers, spines, cores, storage."""
    own = set(requirements.hosts)
    hosts = [_node(requirements, host) for host in requirements.pod.hosts() if host not in own]
    named = [Device(f"ufm{i + 1}", "manager", "fabric manager", 1, None) for i in range(requirements.managers)]
    above = [switch for switch in switches if switch.tier not in ("leaf", "aggregation")]
    return [*hosts, *named, *_blocks(requirements), *(_switch(requirements, switch) for switch in [*above, *central])]


def _blocks(requirements: Requirements) -> list[Device]:
    """Return the blocks of the storage systems whose model is known; the others' size is not."""
    devices: list[Device] = []
    for system in requirements.systems:
        model = system.given.model
        if model is not None and system.planned:
            title, height = model.name or system.given.kind, model.rack_units or 1
            devices += [Device(name, "storage", title, height, model.power_w) for name in system.names_planned]
    return devices


def _check(device: Device, limits: _Limits) -> None:
    if device.rack_units > limits.rack_units:
        raise refuse(
            f"{device.model} is {device.rack_units} rack units high, and a rack has {limits.rack_units}",
            hint=f"use racks with at least {device.rack_units} units",
            field="racks.rack_units",
        )
    if (device.power_w or 0) > limits.power_w:
        raise refuse(
            f"one {device.model} draws {device.power_w or 0:,.0f} W, and a rack takes {limits.power_w:,.0f} W",
            hint=f"racks that take {(device.power_w or 0) / 1000:g}kW hold one each",
            field="racks.power",
        )


def _too_few(requirements: Requirements, limits: _Limits, needed: int) -> Refusal:
    have = requirements.pod.racks.count or 0
    fits = len(requirements.hosts) * have // needed
    return refuse(
        f"the pod takes {needed} racks of {limits.power_w / 1000:g} kW and {limits.rack_units} units, "
        f"and there are {have}",
        hint=f"about {fits} nodes fit {have} such racks; more power for each rack takes fewer of them",
        field="racks.count",
    )
