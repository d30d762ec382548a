"""How many switches and cables a fabric takes: whole numbers from a few parameters, by rules that hold for any size.

The names in the formulas: R ports of a switch, N nodes, C compute ports of a node, P rails, k = C / P ports of a node
on one leaf, U nodes of a scalable unit, d down-links and u up-links of a leaf, S spines that one leaf is joined to.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import ceil, gcd

from podwright.spec.problems import Refusal, refuse


@dataclass(frozen=True, slots=True)
class ComputeParameters:
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
    planes: int = 1

    @property
    def planned(self) -> int:
        """Return how many nodes spines and cores are sized for."""
        return max(self.nodes, self.nodes_planned)

    @property
    def rail_ports(self) -> int:
        """Return the ports of a node on one leaf (k)."""
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
        """Return how many cables run between one leaf and one of its spines."""
        return self.leaf_up // self.spines_per_plane


@dataclass(frozen=True, slots=True)
class StorageParameters:
    """What a storage fabric is sized from; of a unit that is not full, `least_ports` are there from the beginning."""

    nodes: int
    switch_ports: int
    unit: int
    node_ports: int = 2
    ports_per_unit: int = 8
    nodes_planned: int = 0
    reserved_slots: int = 0
    least_ports: int = 0

    @property
    def planned(self) -> int:
        """Return how many nodes spines are sized for."""
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
        """Return the ratio of attached leaf ports to the up-links of the leaf."""
        if self.on_spines:
            return self.subscription_nodes
        return self.subscription_all

    @property
    def subscription_nodes(self) -> str:
        """Return the ratio of a leaf's node ports to its up-links."""
        return ratio(self.slots, self.leaf_up)

    @property
    def subscription_all(self) -> str:
        """Return the ratio of a leaf's node and storage ports to its up-links, wherever the storage is attached."""
        return ratio(self.slots + self.leaf_ports, self.leaf_up)


def size_compute(fabric: ComputeParameters, others_hold: int | None = None) -> ComputeSize:
    """Size a compute fabric, or refuse with the nearest thing that works; `others_hold`: the pod's other fabrics."""
    _check_rails(fabric)
    _check_nodes(fabric, others_hold)
    if fabric.layout == "classic":
        return _size_classic(fabric)
    units = units_of(fabric.nodes + fabric.reserved_slots, fabric.unit)
    slots = slots_of(fabric.planned + fabric.reserved_slots, fabric.unit)
    down = fabric.rail_ports * slots
    _check_leaf(fabric)
    shape = _Leaves(
        per_rail=units,
        planned_per_rail=units_of(fabric.planned + fabric.reserved_slots, fabric.unit),
        rails=fabric.rails,
        down=down,
        up=divided(down, fabric.oversubscription),
    )
    return _size_above(fabric, shape, units, slots)


def size_storage(fabric: StorageParameters) -> StorageSize:
    """Size a storage fabric of two tiers, or refuse it."""
    units = units_of(fabric.nodes + fabric.reserved_slots, fabric.unit)
    planned_units = units_of(fabric.planned + fabric.reserved_slots, fabric.unit)
    slots = slots_of(fabric.planned + fabric.reserved_slots, fabric.unit)
    leaf, planned_leaf = fabric.node_ports * units, fabric.node_ports * planned_units
    planned_ports = storage_ports(fabric, fabric.planned)
    per_leaf = ceil(planned_ports / planned_leaf)
    up = min(slots, fabric.switch_ports - slots - per_leaf)
    if up < 1:
        raise _no_uplinks(fabric, per_leaf)
    spine = spread(planned_leaf, up, fabric.switch_ports)
    if spine is None:
        raise _third_storage_tier(fabric)
    return StorageSize(
        units=units,
        slots=slots,
        ports=storage_ports(fabric, fabric.nodes),
        leaf=leaf,
        spine=spine,
        leaf_up=up,
        leaf_ports=per_leaf,
        on_spines=spine * fabric.switch_ports - planned_leaf * up > planned_ports,
        node_leaf=fabric.node_ports * fabric.nodes,
        leaf_spine=leaf * up,
    )


def spread(leaves: int, up: int, budget: int) -> int | None:
    """Return the least number of spines over which the up-links of every leaf spread evenly, each within its ports."""
    return next((spines for spines in divisors(up) if leaves * up <= budget * spines), None)


def units_of(slots: int, unit: int) -> int:
    """Return the scalable units that hold so many slots."""
    return -(-slots // unit)


def slots_of(slots: int, unit: int) -> int:
    """Return the slots of one unit: all of it, or for a lone unit that is not full the next divisor of it."""
    if slots >= unit:
        return unit
    return next(divisor for divisor in divisors(unit) if divisor >= slots)


def divisors(number: int) -> list[int]:
    """Return all divisors, least first."""
    low = [divisor for divisor in range(1, int(number**0.5) + 1) if number % divisor == 0]
    return low + [number // divisor for divisor in reversed(low) if divisor * divisor != number]


def divided(count: int, by: float) -> int:
    """Divide by a ratio and round up; exact for ratios that people write, such as 1.1."""
    return ceil(count / Fraction(str(by)))


def ratio(first: int, second: int) -> str:
    """Return a ratio in its lowest terms, such as 3:2."""
    shared = gcd(first, second) or 1
    return f"{first // shared}:{second // shared}"


def most_nodes(fabric: ComputeParameters) -> int:
    """Return the nodes that a tree of three tiers of this switch holds."""
    return fabric.switch_ports**3 // 4 // fabric.node_ports


def most_storage_nodes(fabric: StorageParameters) -> int:
    """Return the nodes that two tiers of this switch hold: a spine has a port for each leaf, one up-link of each."""
    return max(fabric.switch_ports // fabric.node_ports * fabric.unit - fabric.reserved_slots, 0)


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The lowest tier: leaves of one rail now and as planned, and what each has."""

    per_rail: int
    planned_per_rail: int
    rails: int
    down: int
    up: int


def _size_classic(fabric: ComputeParameters) -> ComputeSize:
    """Size a layout of all ports in the order of the nodes, leaf after leaf: one rail that holds everything."""
    half = fabric.switch_ports // 2
    leaves, planned = (
        ceil(fabric.node_ports * (count + fabric.reserved_slots) / half) for count in (fabric.nodes, fabric.planned)
    )
    shape = _Leaves(leaves, planned, 1, half, divided(half, fabric.oversubscription))
    units = units_of(fabric.nodes + fabric.reserved_slots, fabric.unit)
    return _size_above(fabric, shape, units, slots_of(fabric.planned + fabric.reserved_slots, fabric.unit))


def _size_above(fabric: ComputeParameters, leaves: _Leaves, units: int, slots: int) -> ComputeSize:
    """Add spines, and cores where two tiers do not reach."""
    radix, total = fabric.switch_ports, leaves.rails * leaves.per_rail
    plane_leaves = leaves.rails // fabric.planes * leaves.planned_per_rail
    spines = spread(plane_leaves, leaves.up, radix)
    spine = fabric.planes * (spines or 0)
    groups = spine_up = core_groups = spine_core = 0
    if spines is None:
        # Half of a spine's ports go up to the core now, so that the leaves of a rail are split into groups.
        groups, plane_leaves, spines = _planes(leaves, radix // 2)
        spine = leaves.rails * groups * spines
        spine_up = divided(plane_leaves * leaves.up // spines, fabric.taper)
        core_groups = ceil(spine * fabric.pods_planned / radix)
        _check_reach(fabric, spines, spine, core_groups)
        spine_core = _core_cables(fabric, leaves, spines, plane_leaves)
    return ComputeSize(
        tiers=3 if groups else 2,
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
        node_leaf=fabric.node_ports * fabric.nodes,
        leaf_spine=total * leaves.up,
        spine_core=spine_core,
        fabric_manager=min(fabric.manager_cables, fabric.reserved_slots * fabric.node_ports),
    )


def _planes(leaves: _Leaves, budget: int) -> tuple[int, int, int]:
    """Split the leaves of a rail into the fewest groups that have an even spread below the core."""
    for groups in range(1, leaves.planned_per_rail + 1):
        size = -(-leaves.planned_per_rail // groups)
        spines = spread(size, leaves.up, budget)
        if spines is not None:
            return groups, size, spines
    raise AssertionError("a leaf has at most as many up-links as half a switch has ports")


def _core_cables(fabric: ComputeParameters, leaves: _Leaves, spines: int, plane_leaves: int) -> int:
    """Count the cables to the core that the leaves which are there call for."""
    links = leaves.up // spines
    filled = [min(plane_leaves, leaves.per_rail - first) for first in range(0, leaves.per_rail, plane_leaves)]
    return leaves.rails * spines * sum(divided(count * links, fabric.taper) for count in filled)


def storage_ports(fabric: StorageParameters, nodes: int) -> int:
    """Return the ports for storage systems beside so many nodes."""
    if nodes < fabric.unit:
        return max(ceil(fabric.ports_per_unit * nodes / fabric.unit), min(fabric.least_ports, fabric.ports_per_unit))
    return fabric.ports_per_unit * units_of(nodes + fabric.reserved_slots, fabric.unit)


def reaches(spines: int, planes: int, core_groups: int) -> bool:
    """Return whether any two planes meet in the core: spine i joins group i mod `core_groups`."""
    if spines >= core_groups:
        return True
    starts = sorted({plane * spines % core_groups for plane in range(planes)})
    # The spines of a plane join so many neighbouring groups. Two planes share one of them where their first groups are
    # nearer to each other than that, either way around the ring of groups.
    return all(min(b - a, core_groups - b + a) < spines for a, b in combinations(starts, 2))


def _check_rails(fabric: ComputeParameters) -> None:
    if fabric.switch_ports % 2:
        raise refuse(
            f"a switch of {fabric.switch_ports} ports has no two halves",
            hint=f"use one with {fabric.switch_ports - 1} or {fabric.switch_ports + 1} ports",
            field="fabrics.compute.switch",
        )
    if fabric.node_ports % fabric.rails:
        allowed = divisors(fabric.node_ports)
        nearest = min(allowed, key=lambda rails: (abs(rails - fabric.rails), -rails))
        raise refuse(
            f"{fabric.rails} rails do not divide the {fabric.node_ports} compute ports of a node",
            hint=f"rails is one of {', '.join(map(str, allowed))}; the nearest is {nearest}",
            field="fabrics.compute.rails",
        )


def _check_leaf(fabric: ComputeParameters) -> None:
    """Check that a full unit fits a leaf, so that a unit that is filled later needs no other leaf."""
    needed = _leaf_ports(fabric, fabric.unit)
    if needed <= fabric.switch_ports:
        return
    fits = [u for u in range(1, fabric.unit) if _leaf_ports(fabric, u) <= fabric.switch_ports]
    hint = f"a switch with {needed + needed % 2} ports would do"
    if fits:
        hint = f"units of at most {fits[-1]} nodes fit; {hint}"
    raise refuse(
        f"a unit of {fabric.unit} nodes needs {needed} ports of each leaf, and a switch has {fabric.switch_ports}",
        hint=hint,
        field="fabrics.compute.scalable_unit",
    )


def _leaf_ports(fabric: ComputeParameters, unit: int) -> int:
    return fabric.rail_ports * unit + divided(fabric.rail_ports * unit, fabric.oversubscription)


def _check_nodes(fabric: ComputeParameters, others_hold: int | None) -> None:
    most = most_nodes(fabric)
    if fabric.planned <= most:
        return
    ends = fabric.node_ports * fabric.planned
    ports = next(ports for ports in range(fabric.switch_ports, 10**6, 2) if ports**3 // 4 >= ends)
    fits = f"at most {most:,} nodes fit"
    if others_hold is not None and others_hold < most:
        fits = f"at most {others_hold:,} nodes fit the pod's storage fabric, and {most:,} this one"
    raise refuse(
        f"{fabric.planned:,} nodes with {fabric.node_ports} compute ports are more than any tree of "
        f"{fabric.switch_ports}-port switches can hold",
        hint=f"{fits}; {fabric.planned:,} need switches with {ports} ports",
        field="fabrics.compute.nodes_planned" if fabric.nodes <= most else "nodes",
    )


def _check_reach(fabric: ComputeParameters, spines: int, spine: int, core_groups: int) -> None:
    planes = spine // spines
    if reaches(spines, planes * fabric.pods_planned, core_groups):
        return
    fits = [
        pods
        for pods in range(1, fabric.pods_planned)
        if reaches(spines, planes * pods, ceil(spine * pods / fabric.switch_ports))
    ]
    raise refuse(
        f"{fabric.pods_planned} planned pods of {fabric.planned:,} nodes do not all meet in the core: "
        f"a leaf reaches {spines} of {core_groups} groups of cores",
        hint=f"plan at most {fits[-1]} pods" if fits else "use a switch with more ports",
        field="fabrics.compute.pods_planned",
    )


def _no_uplinks(fabric: StorageParameters, per_leaf: int) -> Refusal:
    fits = fabric.switch_ports - 1 - per_leaf
    return refuse(
        f"{fabric.unit} nodes and {per_leaf} storage ports leave no up-link on a leaf of {fabric.switch_ports} ports",
        hint=f"units of at most {fits} nodes fit" if fits > 0 else "use a switch with more ports",
        field="fabrics.storage.scalable_unit",
    )


def _third_storage_tier(fabric: StorageParameters) -> Refusal:
    """Return the refusal, with the limit and the two ways out."""
    most = most_storage_nodes(fabric)
    leaves = fabric.node_ports * units_of(fabric.planned + fabric.reserved_slots, fabric.unit)
    return refuse(
        f"{fabric.planned:,} nodes need a third tier of storage switches, which is not designed: "
        f"two tiers of {fabric.switch_ports}-port switches hold {most:,}",
        hint=f"storage switches with {leaves + leaves % 2} ports would do, or several pods of at most {most:,} nodes, "
        "each with storage of its own",
        field="fabrics.storage.switch",
    )
