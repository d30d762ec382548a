"""How many switches and cables a fabric takes: whole numbers from a few parameters, by rules that hold for any size.

The names in the formulas: R ports of a switch, N nodes, C compute ports of a node, P rails, k = C / P ports of a node
on one leaf, U nodes of a scalable unit, d down-links and u up-links of a leaf, S spines that one leaf is joined to.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd

from podwright.spec.problems import Refusal, refuse

TWO, THREE = 2, 3


@dataclass(frozen=True, slots=True)
class ComputeAsk:
    """What a compute fabric is sized from; every policy is a parameter."""

    nodes: int
    node_ports: int
    switch_ports: int
    rails: int
    unit: int
    layout: str = "rail"
    oversubscription: float = 1
    taper: float = 1
    pods_planned: int = 1
    nodes_planned: int = 0
    reserved_slots: int = 0
    manager_cables: int = 4

    @property
    def planned(self) -> int:
        """Nodes that spines and cores are sized for."""
        return max(self.nodes, self.nodes_planned)

    @property
    def rail_ports(self) -> int:
        """Ports of a node on one leaf (k)."""
        return self.node_ports // self.rails


@dataclass(frozen=True, slots=True)
class ComputeSize:
    """The size of a compute fabric; `spines_per_plane` spines serve one plane, a group of leaves that share spines."""

    tiers: int
    units: int
    slots: int
    leaf: int
    spine: int
    core: int
    leaf_down: int
    leaf_up: int
    spines_per_plane: int
    plane_leaves: int
    groups: int
    spine_up: int
    core_groups: int
    node_leaf: int
    leaf_spine: int
    spine_core: int
    fabric_manager: int

    @property
    def links(self) -> int:
        """Cables between one leaf and one of its spines."""
        return self.leaf_up // self.spines_per_plane


@dataclass(frozen=True, slots=True)
class StorageAsk:
    """What a storage fabric is sized from."""

    nodes: int
    switch_ports: int
    unit: int
    node_ports: int = 2
    ports_per_unit: int = 8
    nodes_planned: int = 0
    reserved_slots: int = 0

    @property
    def planned(self) -> int:
        """Nodes that spines are sized for."""
        return max(self.nodes, self.nodes_planned)


@dataclass(frozen=True, slots=True)
class StorageSize:
    """The size of a storage fabric; `on_spines` says where the storage system is attached."""

    units: int
    slots: int
    ports: int
    leaf: int
    spine: int
    leaf_up: int
    leaf_ports: int
    on_spines: bool
    node_leaf: int
    leaf_spine: int

    @property
    def subscription(self) -> str:
        """Leaf ports that are attached to the up-links of the leaf."""
        return ratio(self.slots if self.on_spines else self.slots + self.leaf_ports, self.leaf_up)

    @property
    def subscription_nodes(self) -> str:
        """Node ports of a leaf to its up-links."""
        return ratio(self.slots, self.leaf_up)

    @property
    def subscription_all(self) -> str:
        """Node and storage ports of a leaf to its up-links, wherever the storage system is attached."""
        return ratio(self.slots + self.leaf_ports, self.leaf_up)


def size_compute(ask: ComputeAsk) -> ComputeSize:
    """Sizes a compute fabric, or refuses with the nearest thing that would work."""
    _check_rails(ask)
    if ask.layout == "classic":
        return _size_classic(ask)
    units = units_of(ask.nodes + ask.reserved_slots, ask.unit)
    slots = slots_of(ask.planned + ask.reserved_slots, ask.unit)
    down = ask.rail_ports * slots
    _check_leaf(ask)
    shape = _Leaves(
        per_rail=units,
        planned_per_rail=units_of(ask.planned + ask.reserved_slots, ask.unit),
        rails=ask.rails,
        down=down,
        up=divided(down, ask.oversubscription),
    )
    return _size_above(ask, shape, units, slots)


def size_storage(ask: StorageAsk) -> StorageSize:
    """Sizes a storage fabric; it has two tiers, or is refused."""
    units = units_of(ask.nodes + ask.reserved_slots, ask.unit)
    planned_units = units_of(ask.planned + ask.reserved_slots, ask.unit)
    slots = slots_of(ask.planned + ask.reserved_slots, ask.unit)
    leaf, planned_leaf = ask.node_ports * units, ask.node_ports * planned_units
    planned_ports = _storage_ports(ask, ask.planned)
    per_leaf = ceil(planned_ports / planned_leaf)
    up = min(slots, ask.switch_ports - slots - per_leaf)
    if up < 1:
        raise _no_uplinks(ask, per_leaf)
    spine = spread(planned_leaf, up, ask.switch_ports)
    if spine is None:
        raise _third_storage_tier(ask)
    free = spine * ask.switch_ports - planned_leaf * up
    return StorageSize(
        units=units,
        slots=slots,
        ports=_storage_ports(ask, ask.nodes),
        leaf=leaf,
        spine=spine,
        leaf_up=up,
        leaf_ports=per_leaf,
        on_spines=free - 1 >= planned_ports,
        node_leaf=ask.node_ports * ask.nodes,
        leaf_spine=leaf * up,
    )


def spread(leaves: int, up: int, budget: int) -> int | None:
    """Gives the least number of spines over which the up-links of every leaf spread evenly, each within its ports."""
    return next((spines for spines in divisors(up) if leaves * up <= budget * spines), None)


def units_of(slots: int, unit: int) -> int:
    """Gives the scalable units that hold so many slots."""
    return -(-slots // unit)


def slots_of(slots: int, unit: int) -> int:
    """Gives the slots of one unit: all of it, or for a lone unit that is not full the next divisor of it."""
    return unit if slots >= unit else next(one for one in divisors(unit) if one >= slots)


def divisors(number: int) -> list[int]:
    """Gives all divisors, least first."""
    low = [one for one in range(1, int(number**0.5) + 1) if number % one == 0]
    return low + [number // one for one in reversed(low) if one * one != number]


def divided(count: int, by: float) -> int:
    """Divides by a ratio and rounds up; exact for ratios that people write, such as 1.1."""
    return ceil(count / Fraction(str(by)))


def ratio(first: int, second: int) -> str:
    """Gives a ratio in its lowest terms, such as 3:2."""
    shared = gcd(first, second) or 1
    return f"{first // shared}:{second // shared}"


def most_nodes(ask: ComputeAsk) -> int:
    """Gives the nodes that a tree of three tiers of this switch holds."""
    return ask.switch_ports**3 // 4 // ask.node_ports


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The lowest tier: leaves of one rail now and as planned, and what each has."""

    per_rail: int
    planned_per_rail: int
    rails: int
    down: int
    up: int


def _size_classic(ask: ComputeAsk) -> ComputeSize:
    """All ports in the order of the nodes, leaf after leaf: one rail that holds everything."""
    half = ask.switch_ports // 2
    leaves, planned = (ceil(ask.node_ports * (count + ask.reserved_slots) / half) for count in (ask.nodes, ask.planned))
    shape = _Leaves(leaves, planned, 1, half, divided(half, ask.oversubscription))
    units = units_of(ask.nodes + ask.reserved_slots, ask.unit)
    return _size_above(ask, shape, units, slots_of(ask.planned + ask.reserved_slots, ask.unit))


def _size_above(ask: ComputeAsk, leaves: _Leaves, units: int, slots: int) -> ComputeSize:
    """Adds spines, and cores where two tiers do not reach."""
    radix, total = ask.switch_ports, leaves.rails * leaves.per_rail
    _check_nodes(ask)
    spines = spread(leaves.rails * leaves.planned_per_rail, leaves.up, radix)
    groups, plane_leaves, spine, spine_up, core_groups = 0, leaves.rails * leaves.planned_per_rail, spines or 0, 0, 0
    if spines is None:
        groups, plane_leaves, spines = _planes(leaves, radix // 2)
        spine = leaves.rails * groups * spines
        spine_up = divided(plane_leaves * leaves.up // spines, ask.taper)
        core_groups = ceil(spine * ask.pods_planned / radix)
        _check_reach(ask, spines, spine, core_groups)
    made = ComputeSize(
        tiers=THREE if groups else TWO,
        units=units,
        slots=slots,
        leaf=total,
        spine=spine,
        core=core_groups * spine_up,
        leaf_down=leaves.down,
        leaf_up=leaves.up,
        spines_per_plane=spines,
        plane_leaves=plane_leaves,
        groups=groups,
        spine_up=spine_up,
        core_groups=core_groups,
        node_leaf=ask.node_ports * ask.nodes,
        leaf_spine=total * leaves.up,
        spine_core=_core_cables(ask, leaves, spines, plane_leaves) if groups else 0,
        fabric_manager=min(ask.manager_cables, ask.reserved_slots * ask.node_ports),
    )
    return made


def _planes(leaves: _Leaves, budget: int) -> tuple[int, int, int]:
    """Splits the leaves of a rail into the fewest groups that have an even spread below the core."""
    for groups in range(1, leaves.planned_per_rail + 1):
        size = -(-leaves.planned_per_rail // groups)
        spines = spread(size, leaves.up, budget)
        if spines is not None:
            return groups, size, spines
    raise AssertionError("a leaf has at most as many up-links as half a switch has ports")


def _core_cables(ask: ComputeAsk, leaves: _Leaves, spines: int, plane_leaves: int) -> int:
    """Counts the cables to the core that the leaves which are there call for."""
    links = leaves.up // spines
    filled = [min(plane_leaves, leaves.per_rail - first) for first in range(0, leaves.per_rail, plane_leaves)]
    return leaves.rails * spines * sum(divided(count * links, ask.taper) for count in filled)


def _storage_ports(ask: StorageAsk, nodes: int) -> int:
    if nodes < ask.unit:
        return ceil(ask.ports_per_unit * nodes / ask.unit)
    return ask.ports_per_unit * units_of(nodes + ask.reserved_slots, ask.unit)


def reaches(spines: int, planes: int, core_groups: int) -> bool:
    """Says whether any two planes meet in the core: spine i joins group i mod `core_groups`."""
    if spines >= core_groups:
        return True
    starts = sorted({plane * spines % core_groups for plane in range(planes)})
    return all(min(a - b, core_groups - a + b) < spines for a in starts for b in starts if b < a)


def _check_rails(ask: ComputeAsk) -> None:
    field = "fabrics.compute.rails"
    if ask.switch_ports % 2:
        raise refuse(
            f"a switch of {ask.switch_ports} ports has no two halves",
            hint=f"use one with {ask.switch_ports - 1} or {ask.switch_ports + 1} ports",
            field="fabrics.compute.switch",
        )
    if ask.node_ports % ask.rails:
        allowed = divisors(ask.node_ports)
        nearest = min(allowed, key=lambda one: (abs(one - ask.rails), -one))
        raise refuse(
            f"{ask.rails} rails do not divide the {ask.node_ports} compute ports of a node",
            hint=f"rails is one of {', '.join(map(str, allowed))}; the nearest is {nearest}",
            field=field,
        )


def _check_leaf(ask: ComputeAsk) -> None:
    """A full unit fits a leaf, so that a unit that is filled later needs no other leaf."""
    full = ask.rail_ports * ask.unit
    needed = full + divided(full, ask.oversubscription)
    if needed <= ask.switch_ports:
        return
    fits = [u for u in range(1, ask.unit) if _leaf_ports(ask, u) <= ask.switch_ports]
    mend = f"units of at most {fits[-1]} nodes fit; " if fits else ""
    raise refuse(
        f"a unit of {ask.unit} nodes needs {needed} ports of each leaf, and a switch has {ask.switch_ports}",
        hint=f"{mend}a switch with {needed + needed % 2} ports would do",
        field="fabrics.compute.scalable_unit",
    )


def _leaf_ports(ask: ComputeAsk, unit: int) -> int:
    return ask.rail_ports * unit + divided(ask.rail_ports * unit, ask.oversubscription)


def _check_nodes(ask: ComputeAsk) -> None:
    most = most_nodes(ask)
    if ask.planned <= most:
        return
    ports = next(ports for ports in range(ask.switch_ports, 10**6, 2) if ports**3 // 4 >= ask.node_ports * ask.planned)
    raise refuse(
        f"{ask.planned:,} nodes with {ask.node_ports} compute ports are more than any tree of "
        f"{ask.switch_ports}-port switches can hold",
        hint=f"at most {most:,} nodes fit; {ask.planned:,} need switches with {ports} ports",
        field="fabrics.compute.nodes_planned" if ask.nodes <= most else "nodes",
    )


def _check_reach(ask: ComputeAsk, spines: int, spine: int, core_groups: int) -> None:
    planes = spine // spines
    if reaches(spines, planes * ask.pods_planned, core_groups):
        return
    fits = [
        pods
        for pods in range(1, ask.pods_planned)
        if reaches(spines, planes * pods, ceil(spine * pods / ask.switch_ports))
    ]
    raise refuse(
        f"{ask.pods_planned} planned pods of {ask.planned:,} nodes do not all meet in the core: "
        f"a leaf reaches {spines} of {core_groups} groups of cores",
        hint=f"plan at most {fits[-1]} pods" if fits else "use a switch with more ports",
        field="fabrics.compute.pods_planned",
    )


def _no_uplinks(ask: StorageAsk, per_leaf: int) -> Refusal:
    fits = ask.switch_ports - 1 - per_leaf
    return refuse(
        f"{ask.unit} nodes and {per_leaf} storage ports leave no up-link on a leaf of {ask.switch_ports} ports",
        hint=f"units of at most {fits} nodes fit" if fits > 0 else "use a switch with more ports",
        field="fabrics.storage.scalable_unit",
    )


def _third_storage_tier(ask: StorageAsk) -> Refusal:
    """A leaf can be joined to as many spines as it has up-links: that bounds the leaves."""
    most = ask.switch_ports // ask.node_ports * ask.unit - ask.reserved_slots
    leaves = ask.node_ports * units_of(ask.planned + ask.reserved_slots, ask.unit)
    return refuse(
        f"{ask.planned:,} nodes need a third tier of storage switches, which is not designed",
        hint=f"at most {most:,} nodes fit switches of {ask.switch_ports} ports; {leaves + leaves % 2} ports would do",
        field="fabrics.storage.switch",
    )
