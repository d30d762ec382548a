"""How many switches and cables a storage fabric takes, by the same rules and names as the compute fabric."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from podwright.design.sizing import more_than_one, ratio, slots_of, spread, units_of
from podwright.spec.problems import Refusal, refuse


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
    layout: str = "tree"

    @property
    def planned(self) -> int:
        """Return how many nodes spines are sized for."""
        return max(self.nodes, self.nodes_planned)


@dataclass(frozen=True, slots=True)
class StorageSize:
    """The size of a storage fabric; `on_spines` says where the storage system is attached.

    With a third tier the leaves are split into groups of `group_leaves`, each with spines of its own below the cores.
    """

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
    spines_per_group: int
    group_leaves: int = 0
    core_groups: int = 0
    spine_core: int = 0

    @property
    def tiers(self) -> int:
        """Return how many tiers of switches there are."""
        if not self.spine:
            return 1
        return 3 if self.core_groups else 2

    @property
    def links(self) -> int:
        """Return how many cables run between one leaf and one of its spines."""
        return self.leaf_up // max(self.spines_per_group, 1)

    @property
    def spine_up(self) -> int:
        """Return the cables of a spine to the cores when its group is full."""
        return self.group_leaves * self.links

    @property
    def core(self) -> int:
        """Return how many core switches there are."""
        return self.core_groups * self.spine_up

    def leaves_of_group(self, group: int) -> int:
        """Return the leaves of a group, from 0, that are there now."""
        return min(max(self.leaf - group * self.group_leaves, 0), self.group_leaves)

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


def size_storage(fabric: StorageParameters) -> StorageSize:
    """Size a storage fabric of two tiers, or of three where two do not do, or refuse it."""
    if fabric.layout == "single":
        return _size_single_storage(fabric)
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
    size = StorageSize(
        units=units,
        slots=slots,
        ports=storage_ports(fabric, fabric.nodes),
        leaf=leaf,
        spine=spine or 0,
        leaf_up=up,
        leaf_ports=per_leaf,
        on_spines=spine is not None and spine * fabric.switch_ports - planned_leaf * up > planned_ports,
        node_leaf=fabric.node_ports * fabric.nodes,
        leaf_spine=leaf * up,
        spines_per_group=spine or 0,
    )
    return size if spine else _third_storage_tier(fabric, size, planned_leaf)


def _third_storage_tier(fabric: StorageParameters, size: StorageSize, planned_leaf: int) -> StorageSize:
    """Split the leaves into the fewest groups that half of the ports of their spines hold; the others go up to cores.

    A group has no fewer spines than there are groups of cores, so that each of its leaves reaches all cores.
    """
    radix = fabric.switch_ports
    if fabric.planned > most_storage_nodes(fabric):
        raise _fourth_storage_tier(fabric)
    for groups in range(1, planned_leaf + 1):
        leaves = ceil(planned_leaf / groups)
        spines = spread(leaves, size.leaf_up, radix // 2)
        if spines is not None and ceil(groups * spines / radix) <= spines:
            split = replace(
                size,
                spine=groups * spines,
                spines_per_group=spines,
                group_leaves=leaves,
                core_groups=ceil(groups * spines / radix),
            )
            present = sum(split.leaves_of_group(group) for group in range(groups))
            return replace(split, spine_core=present * spines * split.links)
    raise _fourth_storage_tier(fabric)


def most_storage_nodes(fabric: StorageParameters) -> int:
    """Return the nodes that three tiers hold: as many groups of leaves as a core has ports, of half so many leaves."""
    leaves = fabric.switch_ports * (fabric.switch_ports // 2)
    return max(leaves // fabric.node_ports * fabric.unit - fabric.reserved_slots, 0)


def _size_single_storage(fabric: StorageParameters) -> StorageSize:
    """Size a storage fabric of one switch: the ports of all planned nodes first, then those of the systems."""
    slots = fabric.planned + fabric.reserved_slots
    ports = storage_ports(fabric, fabric.planned)
    fits = (fabric.switch_ports - ports) // fabric.node_ports - fabric.reserved_slots
    if fabric.planned > fits:
        raise more_than_one("storage", fabric.planned, max(fits, 0), fabric.node_ports * slots + ports)
    return StorageSize(
        units=1,
        slots=slots,
        ports=storage_ports(fabric, fabric.nodes),
        leaf=1,
        spine=0,
        leaf_up=0,
        leaf_ports=ports,
        on_spines=False,
        node_leaf=fabric.node_ports * fabric.nodes,
        leaf_spine=0,
        spines_per_group=0,
    )


def storage_ports(fabric: StorageParameters, nodes: int) -> int:
    """Return the ports for storage systems beside so many nodes."""
    if nodes < fabric.unit:
        return max(ceil(fabric.ports_per_unit * nodes / fabric.unit), min(fabric.least_ports, fabric.ports_per_unit))
    return fabric.ports_per_unit * units_of(nodes + fabric.reserved_slots, fabric.unit)


def _no_uplinks(fabric: StorageParameters, per_leaf: int) -> Refusal:
    fits = fabric.switch_ports - 1 - per_leaf
    return refuse(
        f"{fabric.unit} nodes and {per_leaf} storage ports leave no up-link on a leaf of {fabric.switch_ports} ports",
        hint=f"units of at most {fits} nodes fit" if fits > 0 else "use a switch with more ports",
        field="fabrics.storage.scalable_unit",
    )


def _fourth_storage_tier(fabric: StorageParameters) -> Refusal:
    """Return the refusal, with the limit and the two ways out."""
    most = most_storage_nodes(fabric)
    leaves = fabric.node_ports * units_of(fabric.planned + fabric.reserved_slots, fabric.unit)
    ports = next(ports for ports in range(fabric.switch_ports, 10**6) if ports * (ports // 2) >= leaves)
    return refuse(
        f"{fabric.planned:,} nodes need a fourth tier of storage switches, which is not designed: "
        f"three tiers of {fabric.switch_ports}-port switches hold {most:,}",
        hint=f"storage switches with {ports + ports % 2} ports would do, or several pods of at most {most:,} nodes, "
        "each with storage of its own",
        field="fabrics.storage.switch",
    )
