"""Every port of every cable of the compute and storage fabrics; the same input always gives the same list.

Numbers of units, rails, switches and ports count from 1 in names and in `Cable`. A position never depends on how many
nodes there are now, only on how many are planned: growth adds cables and moves none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podwright.design.sizing import ComputeParameters, ComputeSize, divided, slot_of
from podwright.design.sizing_storage import StorageParameters, StorageSize


class Cable(NamedTuple):
    """One cable. A named tuple, since a large pod has some hundred thousand of them."""

    fabric: str
    kind: str
    a: str
    a_port: int
    b: str
    b_port: int


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch: its place in the tree, 0 where a tier has no such number."""

    name: str
    fabric: str
    tier: str
    unit: int = 0
    plane: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class Wired:
    """A fabric: its switches and its cables."""

    switches: list[Switch]
    cables: list[Cable]


def wire_compute(fabric: ComputeParameters, size: ComputeSize, hosts: Sequence[str]) -> Wired:
    """Wire a compute fabric."""
    plan = _Compute(fabric, size)
    cables = [*plan.node_cables(hosts), *plan.manager_cables(), *plan.leaf_cables(), *plan.core_cables()]
    return Wired(plan.switches(), cables)


def wire_storage(
    fabric: StorageParameters, size: StorageSize, hosts: Sequence[str], systems: Sequence[tuple[str, int] | None]
) -> Wired:
    """Wire a storage fabric; `systems` says what each storage port leads to, None for one that is kept free."""
    plan = _Storage(fabric, size)
    cables = [*plan.node_cables(hosts), *plan.leaf_cables(), *plan.core_cables(), *plan.system_cables(systems)]
    return Wired(plan.switches(), cables)


class _Compute:
    """Names and ports of a compute fabric; everything inside counts from 0."""

    def __init__(self, fabric: ComputeParameters, size: ComputeSize) -> None:
        self.fabric, self.size = fabric, size
        self.classic = fabric.layout in ("classic", "single")
        # How many ports of a leaf go to nodes where these fill leaf after leaf.
        self.filled = fabric.switch_ports if fabric.layout == "single" else fabric.switch_ports // 2
        self.rails, self.slots = fabric.rails, size.slots
        if self.classic:
            self.rails, self.slots = 1, 0
        self.per_rail = size.leaf // self.rails
        self.leaf_names = [self._row_names(i) for i in range(self.per_rail)]
        self.up_base = max(fabric.switch_ports // 2, size.leaf_down)

    def switches(self) -> list[Switch]:
        switches = []
        for i, row in enumerate(self.leaf_names):
            unit = 0 if self.classic else i + 1
            for r, name in enumerate(row):
                switches.append(Switch(name, "compute", "leaf", unit, r + 1, i * self.rails + r + 1))
        for index in range(self.size.spine):
            name = self._spine_name(index)
            switches.append(Switch(name, "compute", "spine", 0, self._plane_of(index) + 1, index + 1))
        for group in range(self.size.core_groups):
            first = group * self.size.spine_up + 1
            for j in range(self.size.spine_up):
                switches.append(Switch(self._core_name(group, j), "compute", "core", 0, group + 1, first + j))
        return switches

    def node_cables(self, hosts: Sequence[str]) -> Iterator[Cable]:
        for node, host in enumerate(hosts):
            slot = slot_of(node, self.slots, self.fabric.reserved_slots)
            for nic in range(self.fabric.node_ports):
                leaf, port = self._leaf_port(slot, nic)
                yield Cable("compute", "node_leaf", host, nic + 1, leaf, port)

    def manager_cables(self) -> Iterator[Cable]:
        """Yield two cables for each fabric manager, on different rails."""
        first = max(self.slots - self.fabric.reserved_slots, 0)
        for number in range(self.size.fabric_manager):
            slot, nic = first + number // self.fabric.node_ports, number % self.fabric.node_ports
            leaf, port = self._leaf_port(slot, nic)
            yield Cable("compute", "fabric_manager", f"ufm{number // 2 + 1}", number % 2 + 1, leaf, port)

    def leaf_cables(self) -> Iterator[Cable]:
        links, spines = self.size.links, self.size.spines_per_plane
        names = [self._spine_name(index) for index in range(self.size.spine)]
        for i, row in enumerate(self.leaf_names):
            for r, leaf in enumerate(row):
                first, index = self._plane(i, r)
                for s in range(spines):
                    spine = names[first + s]
                    for j in range(links):
                        port = self.up_base + links * s + j + 1
                        yield Cable("compute", "leaf_spine", leaf, port, spine, links * index + j + 1)

    def core_cables(self) -> Iterator[Cable]:
        if not self.size.core_groups:
            return
        half, links = self.fabric.switch_ports // 2, self.size.links
        for index in range(self.size.spine):
            group = self._plane_of(index) % self.size.groups
            leaves = min(self.size.plane_leaves, self.per_rail - group * self.size.plane_leaves)
            # A group that is planned and has no leaves yet has no cables to the core.
            for j in range(divided(max(leaves, 0) * links, self.fabric.taper)):
                core = self._core_name(index % self.size.core_groups, j)
                port = index // self.size.core_groups + 1
                yield Cable("compute", "spine_core", self._spine_name(index), half + j + 1, core, port)

    def _leaf_port(self, slot: int, nic: int) -> tuple[str, int]:
        if self.classic:
            leaf, port = divmod(slot * self.fabric.node_ports + nic, self.filled)
            return self.leaf_names[leaf][0], port + 1
        width = self.fabric.rail_ports
        unit, index = divmod(slot, self.fabric.unit)
        rail, lane = divmod(nic, width)
        return self.leaf_names[unit][rail], index * width + lane + 1

    def _plane(self, i: int, r: int) -> tuple[int, int]:
        """Return the first spine of a leaf's plane, and the leaf's place in that plane."""
        if not self.size.groups:
            rail, plane = divmod(r, self.fabric.planes)
            return plane * self.size.spines_per_plane, i * (self.rails // self.fabric.planes) + rail
        group, index = divmod(i, self.size.plane_leaves)
        return (r * self.size.groups + group) * self.size.spines_per_plane, index

    def _plane_of(self, spine: int) -> int:
        return spine // self.size.spines_per_plane

    def _row_names(self, i: int) -> list[str]:
        """Return the names of the leaves of a unit, one for each rail; without rails it is a single leaf."""
        if self.classic:
            return [f"leaf-{i + 1:03d}"]
        if self.fabric.planes == 1:
            return [f"leaf-u{i + 1:02d}-r{rail + 1}" for rail in range(self.rails)]
        # The ports of one cage are one rail, each in a plane of its own.
        places = [divmod(number, self.fabric.planes) for number in range(self.rails)]
        return [f"leaf-u{i + 1:02d}-p{plane + 1}-r{rail + 1}" for rail, plane in places]

    def _spine_name(self, index: int) -> str:
        if not self.size.groups and self.fabric.planes == 1:
            return f"spine-{index + 1:02d}"
        if not self.size.groups:
            plane, number = divmod(index, self.size.spines_per_plane)
            return f"spine-p{plane + 1}-{number + 1:02d}"
        plane, number = divmod(index, self.size.spines_per_plane)
        rail, group = divmod(plane, self.size.groups)
        if self.size.groups == 1:
            return f"spine-r{rail + 1}-{number + 1:02d}"
        return f"spine-r{rail + 1}-g{group + 1}-{number + 1:02d}"

    def _core_name(self, group: int, number: int) -> str:
        return f"core-{group + 1}-{number + 1:02d}"


class _Storage:
    """Names and ports of a storage fabric; everything inside counts from 0."""

    def __init__(self, fabric: StorageParameters, size: StorageSize) -> None:
        self.fabric, self.size = fabric, size
        self.is_single = fabric.layout == "single"
        self.names = [self._row_names(i) for i in range(size.units)]
        self.spines = [self._spine_name(s) for s in range(size.spine)]

    def switches(self) -> list[Switch]:
        width = self.fabric.node_ports
        switches = []
        for i, row in enumerate(self.names):
            for q, name in enumerate(row):
                switches.append(Switch(name, "storage", "leaf", i + 1, q + 1, i * width + q + 1))
        for s, name in enumerate(self.spines):
            group = s // self.size.spines_per_group + 1 if self.size.core_groups else 0
            switches.append(Switch(name, "storage", "spine", 0, group, s + 1))
        for number in range(self.size.core):
            group, index = divmod(number, self.size.spine_up)
            switches.append(Switch(_storage_core(group, index), "storage", "core", 0, group + 1, number + 1))
        return switches

    def node_cables(self, hosts: Sequence[str]) -> Iterator[Cable]:
        width = self.fabric.node_ports
        for node, host in enumerate(hosts):
            slot = slot_of(node, self.size.slots, self.fabric.reserved_slots)
            unit, index = divmod(slot, self.fabric.unit)
            for q in range(width):
                if self.is_single:
                    yield Cable("storage", "node_leaf", host, q + 1, self.names[0][0], slot * width + q + 1)
                    continue
                yield Cable("storage", "node_leaf", host, q + 1, self.names[unit][q], index + 1)

    def leaf_cables(self) -> Iterator[Cable]:
        links, base = self.size.links, self.fabric.switch_ports - self.size.leaf_up
        each = self.size.spines_per_group
        for i, row in enumerate(self.names):
            for q, leaf in enumerate(row):
                group, index = divmod(i * self.fabric.node_ports + q, self.size.group_leaves or 1 << 30)
                for s, spine in enumerate(self.spines[group * each : (group + 1) * each]):
                    for j in range(links):
                        yield Cable(
                            "storage", "leaf_spine", leaf, base + links * s + j + 1, spine, links * index + j + 1
                        )

    def core_cables(self) -> Iterator[Cable]:
        """Yield a cable from each spine to every core of one group, as far as there are leaves below it."""
        if not self.size.core_groups:
            return
        half = self.fabric.switch_ports // 2
        for index, spine in enumerate(self.spines):
            leaves = self.size.leaves_of_group(index // self.size.spines_per_group)
            port, group = divmod(index, self.size.core_groups)
            for j in range(leaves * self.size.links):
                yield Cable("storage", "spine_core", spine, half + j + 1, _storage_core(group, j), port + 1)

    def system_cables(self, systems: Sequence[tuple[str, int] | None]) -> Iterator[Cable]:
        port_of = self._spine_port if self.size.on_spines else self._leaf_port
        for port, end in enumerate(systems):
            if end is not None:
                switch, number = port_of(port)
                yield Cable("storage", "storage", *end, switch, number)

    def _row_names(self, i: int) -> list[str]:
        width = 1 if self.is_single else self.fabric.node_ports
        return [f"st-leaf-u{i + 1:02d}-{q + 1}" for q in range(width)]

    def _spine_name(self, index: int) -> str:
        if not self.size.core_groups:
            return f"st-spine-{index + 1:02d}"
        group, number = divmod(index, self.size.spines_per_group)
        return f"st-spine-g{group + 1}-{number + 1:02d}"

    def _spine_port(self, port: int) -> tuple[str, int]:
        """Return a port after those of all planned leaves, in turn over the spines."""
        leaves = self.fabric.node_ports * -(-(self.fabric.planned + self.fabric.reserved_slots) // self.fabric.unit)
        index, spine = divmod(port, self.size.spine)
        return self.spines[spine], leaves * self.size.links + index + 1

    def _leaf_port(self, port: int) -> tuple[str, int]:
        """Return a port after the node ports, in turn over the leaves of a unit."""
        if self.is_single:
            return self.names[0][0], self.size.slots * self.fabric.node_ports + port + 1
        unit, index = divmod(port, self.fabric.ports_per_unit)
        row, q = divmod(index, self.fabric.node_ports)
        return self.names[unit][q], self.size.slots + row + 1


def _storage_core(group: int, number: int) -> str:
    return f"st-core-{group + 1}-{number + 1:02d}"
