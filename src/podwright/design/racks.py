"""Where everything stands: nodes, switches and storage in racks, within power, cooling and height.

A scalable unit has racks of its own, with its leaves in the middle of them; spines, cores, storage and management hosts
stand in the middle of the floor. The floor is laid out for the nodes that are planned, so that growth moves no rack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import ceil
from operator import itemgetter

from podwright.design.domain_racks import add_parts, check_domain, has_shelves, names_of_parts, rack_limit_w
from podwright.design.floor import CABLE_MANAGER, FEEDS, Device, Floor, Rack, RackPlace, devices_of, feed_names
from podwright.design.management import INFRA
from podwright.design.requirements import Requirements
from podwright.design.sizing import slot_of
from podwright.design.wiring import Switch
from podwright.design.xlsx import letters
from podwright.spec import NodeModel, SwitchModel
from podwright.spec.problems import Refusal, refuse


@dataclass(frozen=True, slots=True)
class _Limits:
    """What one rack takes, and how many of its switches share a cable manager (0: there is none)."""

    rack_units: int
    power_w: float
    per_manager: int

    def managers(self, switches: int) -> int:
        """Return the rack units of the cable managers of so many switches in one rack."""
        return ceil(switches / self.per_manager) if self.per_manager else 0


@dataclass(slots=True)
class _Filling:
    """A rack that is being filled: what is in it, and what that takes."""

    devices: list[Device] = field(default_factory=list)
    rack_units: int = 0
    switches: int = 0
    power_w: float = 0.0

    def takes(self, device: Device, limits: _Limits) -> bool:
        """Return whether a device fits, its share of a cable manager included."""
        height = self.rack_units + device.rack_units + limits.managers(self.switches + device.is_switch)
        return height <= limits.rack_units and self.power_w + (device.power_w or 0) <= limits.power_w

    def add(self, device: Device) -> None:
        """Put a device in."""
        self.devices.append(device)
        self.rack_units += device.rack_units
        self.switches += device.is_switch
        self.power_w += device.power_w or 0


def lay_out(requirements: Requirements, switches: Sequence[Switch], central: Sequence[Switch]) -> Floor:
    """Place all devices, or refuse a device that no rack can take and racks that are too few.

    `central` are the management switches that stand in the middle when all planned nodes are there.
    """
    allowed = requirements.pod.racks
    limits = _limits(requirements)
    slots = _slots(requirements, limits, switches, central)
    present = {*requirements.models, *(switch.name for switch in switches)}
    present |= set(requirements.manager_models)
    present.update(chain.from_iterable(map(names_of_parts, slots)))
    for system in requirements.systems:
        present.update(system.names)
    floor = _number(requirements, slots, present, limits)
    if allowed.count is not None and len(floor.racks) > allowed.count:
        raise _too_few(requirements, limits, len(floor.racks))
    return floor


def rack_places(requirements: Requirements, switches: Sequence[Switch], central: Sequence[Switch]) -> int:
    """Count the places for racks that `lay_out` makes, those that are kept free included."""
    return len(_slots(requirements, _limits(requirements), switches, central))


def _limits(requirements: Requirements) -> _Limits:
    allowed = requirements.pod.racks
    return _Limits(allowed.rack_units, allowed.limit_w, allowed.switches_per_manager)


def _slots(
    requirements: Requirements, limits: _Limits, switches: Sequence[Switch], central: Sequence[Switch]
) -> list[list[Device]]:
    """Return what stands in each place for a rack, as planned; refuse a device that no rack can take."""
    nodes = [_node(requirements, host) for host in requirements.hosts]
    leaves = [(unit, _switch(requirements, switch)) for unit, switch in _leaf_units(requirements, switches)]
    around = _around(requirements, switches, central)
    for device in [*nodes, *(device for _, device in leaves), *around]:
        _check(device, limits)
    check_domain(requirements, nodes)
    return _rows(requirements, limits, nodes, leaves, around)


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
    if units == 1 and requirements.domain is None:
        planned = [*by_unit[0], *nodes, *nodes[:1] * (requirements.planned - len(nodes))]
        if len(_pack(planned, limits)) == 1:
            # A pod that fits one rack is not torn apart.
            return [[*by_unit[0], *nodes]]
    width = _nodes_in_rack(requirements, nodes, limits)
    node_racks = ceil(min(unit, requirements.planned + requirements.reserved) / width)
    most = max((len(_pack(devices, limits)) for devices in by_unit), default=0)
    blocks = [_empty_racks(node_racks) for _ in range(units)]
    _fill(requirements, nodes, width, blocks)
    for number, block in enumerate(blocks):
        network = _pack(by_unit[number], limits)
        # Every unit keeps room for as many racks of leaves as the widest has, so that all units are laid out alike.
        block[node_racks // 2 : node_racks // 2] = network + _empty_racks(most - len(network))
    ordered = [*blocks[: units // 2], _pack(around, limits), *blocks[units // 2 :]]
    return list(chain.from_iterable(ordered))


def _fill(requirements: Requirements, nodes: Iterable[Device], width: int, blocks: list[list[list[Device]]]) -> None:
    """Put nodes into the racks of their units, so many to each."""
    unit, reserved = requirements.unit, requirements.reserved
    slots = 0 if requirements.is_classic else min(unit, requirements.planned + reserved)
    for index, node in enumerate(nodes):
        number, offset = divmod(slot_of(index, slots, reserved), unit)
        blocks[number][offset // width].append(node)
    add_parts(requirements, blocks)


def _nodes_in_rack(requirements: Requirements, nodes: Iterable[Device], limits: _Limits) -> int:
    if requirements.domain is not None:
        return requirements.domain.nodes
    return min((len(_pack([node] * requirements.unit, limits)[0]) for node in _kinds(nodes)), default=1)


def _empty_racks(count: int) -> list[list[Device]]:
    return [[] for _ in range(count)]


def _number(requirements: Requirements, slots: list[list[Device]], present: set[str], limits: _Limits) -> Floor:
    """Name racks and give each device its place; what is not there yet leaves its place free."""
    racks: list[Rack] = []
    places: dict[str, RackPlace] = {}
    pdus: dict[str, int] = {}
    for index, devices in enumerate(slots):
        row, column = divmod(index, requirements.pod.racks.per_row)
        name = f"{letters(row)}{column + 1:02d}"
        stacked = _stack(devices, name, limits, present)
        places |= {device.name: RackPlace(name, unit, row, column) for unit, device in stacked}
        if stacked:
            racks.append(Rack(name, row, column, tuple(stacked), rack_limit_w(requirements, devices)))
            if has_shelves(devices):
                # The shelves of an NVLink domain are its power feeds.
                continue
            # A power distribution unit is as high as its rack: its network port is at half of that.
            middle = RackPlace(name, limits.rack_units // 2, row, column)
            for feed, pdu in enumerate(feed_names(name)):
                pdus[pdu], places[pdu] = FEEDS * index + feed, middle
    devices = [device for device in devices_of(racks) if device.kind != CABLE_MANAGER]
    power = {device.model for device in devices if device.power_w is None}
    weight = {device.model for device in devices if device.weight_kg is None}
    return Floor(racks, places, tuple(sorted(power)), tuple(sorted(weight)), len(slots), pdus)


def _stack(devices: Sequence[Device], rack: str, limits: _Limits, present: set[str]) -> list[tuple[int, Device]]:
    """Put what is heavy at the bottom and switches at the top, near the tray; what is only planned keeps its room."""
    low, high = 1, limits.rack_units + 1
    stacked = []
    for device in [device for device in devices if not device.is_switch]:
        stacked.append((low, device))
        low += device.rack_units
    switches = [device for device in devices if device.is_switch]
    for device in _with_managers(switches, rack, limits.per_manager, present):
        high -= device.rack_units
        stacked.append((high, device))
    there = [(unit, device) for unit, device in stacked if _is_there(device, present)]
    return sorted(there, key=itemgetter(0))


def _is_there(device: Device, present: set[str]) -> bool:
    """Return whether a device is there now: a cable manager is where it has a name."""
    if device.kind == CABLE_MANAGER:
        return bool(device.name)
    return device.name in present


def _with_managers(switches: Sequence[Device], rack: str, per_manager: int, present: set[str]) -> list[Device]:
    """Return switches from the top down, each group of them with its cable manager in its middle.

    A manager without a name is one whose switches are all planned.
    """
    if not per_manager:
        return list(switches)
    devices: list[Device] = []
    for first in range(0, len(switches), per_manager):
        group = switches[first : first + per_manager]
        middle = ceil(len(group) / 2)
        name = ""
        if any(device.name in present for device in group):
            name = f"{rack}-cm{first // per_manager + 1:02d}"
        manager = Device(name, CABLE_MANAGER, CABLE_MANAGER, 1, None)
        devices += [*group[:middle], manager, *group[middle:]]
    return devices


def _pack(devices: Iterable[Device], limits: _Limits) -> list[list[Device]]:
    """Fill racks in the order given."""
    racks: list[_Filling] = []
    for device in devices:
        if not racks or not racks[-1].takes(device, limits):
            racks.append(_Filling())
        racks[-1].add(device)
    return [rack.devices for rack in racks]


def _kinds(nodes: Iterable[Device]) -> list[Device]:
    return list({node.model: node for node in nodes}.values())


def _node(requirements: Requirements, host: str) -> Device:
    model = requirements.models[host]
    facts = (model.rack_units or 1, model.power_w, model.weight_kg, model.heat_btu_h)
    return Device(host, "node", model.name or "node", *facts)


def _switch(requirements: Requirements, switch: Switch) -> Device:
    model = switch_model(requirements, switch)
    kind = f"{switch.fabric} {switch.tier}"
    return Device(switch.name, kind, model_name(model), model.rack_units or 1, model.power_w, model.weight_kg)


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
        model = fabric.switch if switch.tier == "leaf" else fabric.aggregation
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
    return switch.fabric == "management" and switch.plane == INFRA


def _around(requirements: Requirements, switches: Sequence[Switch], central: Sequence[Switch]) -> list[Device]:
    """Return what belongs to no unit, as planned: management hosts, managers, spines, cores, storage."""
    own = set(requirements.hosts)
    hosts = [_node(requirements, host) for host in requirements.pod.hosts() if host not in own]
    named = [_manager(name, model) for name, model in requirements.manager_models.items()]
    above = [switch for switch in switches if switch.tier != "leaf" and switch.fabric != "management"]
    return [*hosts, *named, *_blocks(requirements), *(_switch(requirements, switch) for switch in [*above, *central])]


def _manager(name: str, model: NodeModel | None) -> Device:
    model = model or NodeModel()
    title = model.name or "fabric manager"
    return Device(name, "manager", title, model.rack_units or 1, model.power_w, model.weight_kg)


def _blocks(requirements: Requirements) -> list[Device]:
    """Return the blocks of the storage systems whose model is known; the others' size is not."""
    devices: list[Device] = []
    for system in requirements.systems:
        model = system.storage.model
        if model is not None:
            title, height = model.name or system.storage.kind, model.rack_units or 1
            devices += [
                Device(name, "storage", title, height, model.power_w, model.weight_kg) for name in system.names_planned
            ]
    return devices


def _check(device: Device, limits: _Limits) -> None:
    height = device.rack_units + limits.managers(int(device.is_switch))
    if height > limits.rack_units:
        beside = " with its cable manager" if height > device.rack_units else ""
        raise refuse(
            f"{device.model}{beside} is {height} rack units high, and a rack has {limits.rack_units}",
            hint=f"use racks with at least {height} units",
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
