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
from podwright.theme.words import count


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
        return self.leaf_up // max(self.spines_per_plane, 1)


def size_compute(fabric: ComputeParameters, others_hold: int | None = None) -> ComputeSize:
    """Size a compute fabric, or refuse with the nearest thing that works; `others_hold`: the pod's other fabrics."""
    _check_rails(fabric)
    _check_nodes(fabric, others_hold)
    if fabric.layout == "classic":
        return _size_classic(fabric)
    if fabric.layout == "single":
        return _size_single(fabric)
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


def slot_of(node: int, slots: int, reserved: int) -> int:
    """Return the slot of a node, both from 0: the last slots of the first unit are kept for the fabric manager.

    With no slots to a unit, which is how a classic layout counts, the first ones are.
    """
    return node if node < slots - reserved else node + reserved


def divisors(number: int) -> list[int]:
    """Return all divisors, least first."""
    low = [divisor for divisor in range(1, int(number**0.5) + 1) if number % divisor == 0]
    return low + [number // divisor for divisor in reversed(low) if divisor * divisor != number]


def divided(count: int, by: float) -> int:
    """Divide by a ratio and round up; exact for ratios that people write, such as 1.1."""
    return ceil(count / Fraction(str(by)))


def ratio(first: int, second: int) -> str:
    """Return a ratio in its lowest terms, such as 3:2."""
    if not second:
        # A lone switch has no up-links, and nothing to share.
        return "1:1"
    shared = gcd(first, second) or 1
    return f"{first // shared}:{second // shared}"


def most_nodes(fabric: ComputeParameters) -> int:
    """Return the nodes that a tree of three tiers of this switch holds."""
    return fabric.switch_ports**3 // 4 // fabric.node_ports


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


def _size_single(fabric: ComputeParameters) -> ComputeSize:
    """Size a fabric of one switch, or refuse nodes that it has no ports for."""
    slots = fabric.planned + fabric.reserved_slots
    fits = fabric.switch_ports // fabric.node_ports - fabric.reserved_slots
    if fabric.planned > fits:
        raise more_than_one("compute", fabric.planned, fits, fabric.node_ports * slots)
    return ComputeSize(
        tiers=1,
        units=1,
        slots=slots,
        leaf=1,
        spine=0,
        core=0,
        leaf_down=fabric.node_ports * slots,
        leaf_up=0,
        spines_per_plane=0,
        plane_leaves=1,
        groups=0,
        spine_up=0,
        core_groups=0,
        node_leaf=fabric.node_ports * fabric.nodes,
        leaf_spine=0,
        spine_core=0,
        fabric_manager=min(fabric.manager_cables, fabric.reserved_slots * fabric.node_ports),
    )


def more_than_one(name: str, planned: int, fits: int, ports: int) -> Refusal:
    """Return the refusal of nodes that one switch of a fabric has no ports for."""
    return refuse(
        f"{planned:,} nodes do not fit one {name} switch, which has ports for {fits:,}",
        hint=f"leave `layout: single` out, or use a switch with {ports + ports % 2} ports",
        field=f"fabrics.{name}.layout",
    )


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
        hint=f"plan at most {count(fits[-1], 'pod')}" if fits else "use a switch with more ports",
        field="fabrics.compute.pods_planned",
    )
