"""What a pod asks of its fabrics: the numbers of the file, with the library's and our defaults filled in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from podwright.design.domains import check_unit, shared_domain
from podwright.design.sizing import ComputeParameters, slot_of, slots_of, units_of
from podwright.design.sizing_storage import StorageParameters, storage_ports
from podwright.design.speeds import check_ports, link_speed, slower_ports, switch_at
from podwright.design.systems import PORT_BYTES_S, System, Units, storage_ends, systems_of, without_cable
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import ComputeFabric, NodeGroup, NodeModel, Pod, SwitchModel
    from podwright.spec.hardware import NvlinkDomain

PORTS_PER_UNIT = 8
# The fabric manager whose facts are known, and the slowest fabric that it is made for.
MANAGER, MANAGER_GBPS = "ufm-appliance", 400


@dataclass(frozen=True, slots=True)
class Requirements:
    """What is to be designed: the hosts on the fabrics in their order, and the numbers of each fabric."""

    pod: Pod
    hosts: tuple[str, ...]
    models: dict[str, NodeModel]
    compute: ComputeParameters | None
    compute_switch: SwitchModel | None
    storage: StorageParameters | None
    storage_switch: SwitchModel | None
    systems: tuple[System, ...]
    domain: NvlinkDomain | None = None

    @property
    def planned(self) -> int:
        """Return how many nodes everything that must not move is laid out for."""
        if self.compute is None:
            return len(self.hosts)
        return max(len(self.hosts), self.compute.planned)

    @property
    def unit(self) -> int:
        """Return the nodes of a scalable unit; all of them where there is no compute fabric."""
        if self.compute is None:
            return max(self.planned, 1)
        return self.compute.unit

    @property
    def units_planned(self) -> int:
        """Return how many scalable units the floor is laid out for."""
        return units_of(self.planned + self.reserved, self.unit)

    @property
    def reserved(self) -> int:
        """Return how many node slots are kept for the fabric manager."""
        if self.compute is None:
            return 0
        return self.compute.reserved_slots

    @property
    def domains_planned(self) -> int:
        """Return how many NVLink domains the floor is laid out for."""
        return ceil((self.planned + self.reserved) / self.domain.nodes) if self.domain else 0

    @property
    def domains_there(self) -> set[int]:
        """Return the numbers of the NVLink domains that have nodes now, from 0."""
        if self.domain is None:
            return set()
        slots = (slot_of(node, self.unit, self.reserved) for node in range(len(self.hosts)))
        return {slot // self.domain.nodes for slot in slots}

    @property
    def managed_leaves_planned(self) -> int:
        """Return how many leaves with a management port there are when the planned nodes are there."""
        leaves = {"compute": self._compute_leaves_planned, "storage": self._storage_leaves_planned}
        return sum(count for fabric, count in leaves.items() if self.has_management_port(fabric))

    @property
    def _compute_leaves_planned(self) -> int:
        compute = self.compute
        if compute is None:
            return 0
        if compute.layout == "single":
            return 1
        if self.is_classic:
            # Without rails the ports of all slots fill leaf after leaf: half of a leaf's ports go to nodes.
            return units_of(compute.node_ports * (self.planned + self.reserved), compute.switch_ports // 2)
        return compute.rails * self.units_planned

    @property
    def _storage_leaves_planned(self) -> int:
        """Count by the storage fabric's own units, each with a leaf for every storage port of a node."""
        storage = self.storage
        if storage is None:
            return 0
        if storage.layout == "single":
            return 1
        return storage.node_ports * units_of(storage.planned + storage.reserved_slots, storage.unit)

    def has_management_port(self, fabric: str) -> bool:
        """Return whether the switches of a fabric are managed from inside; those that are not have no port for it."""
        switch = self.switch_of(fabric)
        return switch is not None and switch.management_port

    def subnet_managers(self, fabric: str) -> tuple[str, ...]:
        """Return the hosts that run the subnet manager of a fabric whose switches run none, the active one first."""
        switch = self.switch_of(fabric)
        if switch is None or switch.kind == "ethernet" or switch.management_port:
            return ()
        if fabric == "compute" and self.managers:
            return tuple(self.manager_models)
        return self.hosts[:2]

    def switch_of(self, fabric: str) -> SwitchModel | None:
        """Return the switch of the `compute` or the `storage` fabric."""
        return {"compute": self.compute_switch, "storage": self.storage_switch}[fabric]

    @property
    def is_classic(self) -> bool:
        """Return whether the compute fabric has no rails."""
        return self.compute is not None and self.compute.layout in ("classic", "single")

    @property
    def managers(self) -> int:
        """Return how many fabric managers there are, each with two cables."""
        if self.compute is None:
            return 0
        cables = min(self.compute.manager_cables, self.reserved * self.compute.node_ports)
        return ceil(cables / 2)

    @property
    def manager_models(self) -> dict[str, NodeModel | None]:
        """Return the fabric managers by name, with their model where it is known."""
        from podwright.spec import node_model

        model = None
        if self.compute_switch is not None and (self.compute_switch.speed_gbps or 0) >= MANAGER_GBPS:
            model = node_model(MANAGER)
        return {f"ufm{number + 1}": model for number in range(self.managers)}


def requirements_of(pod: Pod) -> Requirements:
    """Return what a pod requires of its fabrics, or refuse a wrong one."""
    groups, hosts = _fabric_groups(pod), fabric_hosts(pod)
    compute, switch = _compute(pod, groups, len(hosts))
    storage, storage_switch = _storage(pod, groups, compute, len(hosts))
    check_ports(pod, groups)
    models: dict[str, NodeModel] = {}
    for group in pod.nodes:
        models |= dict.fromkeys(group.hosts, group.model)
    systems = tuple(systems_of(pod, _units(compute, storage, len(hosts))))
    if storage is not None and storage_switch is not None and systems:
        storage = _with_ports(pod, storage, storage_switch, systems)
        systems = tuple(_cabled(storage, storage_switch, systems))
    domain = shared_domain(group.model for group in groups)
    required = Requirements(pod, hosts, models, compute, switch, storage, storage_switch, systems, domain)
    if domain is not None:
        check_unit(domain, required.unit, required.units_planned)
    return required


def speed_warnings(pod: Pod) -> list[str]:
    """Return what is to be said of ports that are joined and are not equally fast."""
    return list(slower_ports(pod, _fabric_groups(pod)))


def fabric_hosts(pod: Pod) -> tuple[str, ...]:
    """Return the hosts that are on the compute fabric, in the order of the file."""
    hosts: list[str] = []
    for group in _fabric_groups(pod):
        hosts += group.hosts
    return tuple(hosts)


def _fabric_groups(pod: Pod) -> list[NodeGroup]:
    """Return the groups with compute ports; all but those for management where none has any."""
    groups = [group for group in pod.nodes if "management" not in group.roles]
    return [group for group in groups if ports_of(group.model, "compute")] or groups


def ports_of(model: NodeModel, kind: str) -> list[str]:
    """Return the names of a node's ports to one fabric: the device's where it is known, else `kind1`, `kind2`."""
    ports = [nic for nic in model.nics if nic.kind == kind]
    return [nic.name or f"{kind}{number}" for number, nic in enumerate(ports, 1)]


def _compute(pod: Pod, groups: Sequence[NodeGroup], nodes: int) -> tuple[ComputeParameters | None, SwitchModel | None]:
    counts = {group.model.name or "a node": len(ports_of(group.model, "compute")) for group in groups}
    node_ports = max(counts.values(), default=0)
    if not node_ports:
        return None, None
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
        raise refuse(
            f"nodes with different numbers of compute ports share one fabric: {listed}",
            hint="give them a pod each, or `roles: [management]` to those that are not on the fabric",
            field="nodes",
        )
    fabric = pod.compute_fabric()
    if fabric is None or fabric.switch is None:
        raise _no_switch(groups[0].model, fabric.kind if fabric else "infiniband")
    _check_ethernet(fabric)
    speed = link_speed(pod, groups[0].model, "compute") or 0
    switch = switch_at(fabric.switch, speed)
    if switch.kind is None:
        # One that is written out by its ports alone is what its fabric is.
        switch = switch.model_copy(update={"kind": fabric.kind})
    return _compute_parameters(fabric, switch, node_ports, nodes), switch


def _check_ethernet(fabric: ComputeFabric) -> None:
    """Refuse what only one of the two kinds of fabric has."""
    has = {
        "planes": fabric.kind == "infiniband" and fabric.planes > 1,
        "sharp": fabric.kind == "ethernet" and fabric.sharp,
        "reserved_slots": fabric.kind == "ethernet" and fabric.reserved_slots > 0,
        "layout": fabric.planes > 1 and fabric.layout != "rail",
    }
    reasons = {
        "planes": ("an InfiniBand fabric is one plane", "leave it out, or write `kind: ethernet`"),
        "sharp": ("Ethernet switches add up nothing", "leave it out"),
        "reserved_slots": ("an Ethernet fabric has no fabric manager to keep slots for", "leave it out"),
        "layout": ("planes are made of rails", "write `layout: rail`"),
    }
    for name, is_wrong in has.items():
        if is_wrong:
            raise refuse(reasons[name][0], hint=reasons[name][1], field=f"fabrics.compute.{name}")


def _compute_parameters(fabric: ComputeFabric, switch: SwitchModel, node_ports: int, nodes: int) -> ComputeParameters:
    rails = (fabric.rails or node_ports) * fabric.planes
    node_ports *= fabric.planes
    width = max(node_ports // rails, 1)
    unit = fabric.scalable_unit or max(switch.ports // 2 // width, 1)
    if fabric.layout == "single":
        # All of its nodes are beside each other.
        unit = max(switch.ports // node_ports, 1)
    if fabric.reserved_slots >= unit:
        raise refuse(
            f"{fabric.reserved_slots} reserved slots leave no node in a unit of {unit}",
            hint=f"reserve at most {unit - 1}",
            field="fabrics.compute.reserved_slots",
        )
    if fabric.nodes_planned is not None and fabric.nodes_planned < nodes:
        raise refuse(
            f"{fabric.nodes_planned} nodes are planned, and the pod has {nodes}",
            hint=f"plan {nodes} or more",
            field="fabrics.compute.nodes_planned",
        )
    return ComputeParameters(
        nodes=nodes,
        node_ports=node_ports,
        switch_ports=switch.ports,
        rails=rails,
        unit=unit,
        layout=fabric.layout,
        oversubscription=fabric.oversubscription,
        taper=fabric.taper,
        pods_planned=fabric.pods_planned,
        nodes_planned=fabric.nodes_planned or nodes,
        reserved_slots=fabric.reserved_slots,
        manager_cables=fabric.manager_cables,
        planes=fabric.planes,
    )


def _storage(
    pod: Pod, groups: Sequence[NodeGroup], compute: ComputeParameters | None, nodes: int
) -> tuple[StorageParameters | None, SwitchModel | None]:
    fabric = pod.storage_fabric()
    if fabric is None or fabric.switch is None or not groups:
        return None, None
    have = min(len(ports_of(group.model, "storage")) for group in groups)
    node_ports = fabric.node_ports or have
    if node_ports < 1:
        return None, None
    if have and node_ports > have:
        raise refuse(
            f"a node has {have} storage ports, not {node_ports}",
            hint=f"write `node_ports: {have}` or less",
            field="fabrics.storage.node_ports",
        )
    switch = switch_at(fabric.switch, link_speed(pod, groups[0].model, "storage") or 0)
    unit, planned, reserved = switch.ports // 2, nodes, 0
    if compute is not None:
        unit, planned, reserved = compute.unit, compute.planned, compute.reserved_slots
    parameters = StorageParameters(
        nodes=nodes,
        switch_ports=switch.ports,
        unit=max(planned + reserved, 1) if fabric.layout == "single" else fabric.scalable_unit or unit,
        node_ports=node_ports,
        layout=fabric.layout,
        ports_per_unit=fabric.ports_per_unit or PORTS_PER_UNIT,
        nodes_planned=planned,
        reserved_slots=reserved,
    )
    return parameters, switch


def _with_ports(
    pod: Pod, storage: StorageParameters, switch: SwitchModel, systems: Sequence[System]
) -> StorageParameters:
    """Return a storage fabric with ports for all blocks of its systems; a number that the pod itself gives stays.

    More than a cable to each block is worth it as long as leaves have as many up-links as storage ports.
    """
    own, speed, units = pod.fabrics.storage, port_bytes_s(switch), systems[0].units
    cables = sum(ceil(system.cables(speed) / units.planned) for system in systems)
    least = sum(system.room for system in systems)
    storage = replace(storage, least_ports=max(least, min(cables, storage.ports_per_unit)))
    if own is not None and own.ports_per_unit is not None:
        return storage
    worth = storage.node_ports * ((storage.switch_ports - units.slots) // 2)
    if storage.layout == "single":
        worth = max(storage.switch_ports - storage.node_ports * units.slots, 0)
        storage = replace(storage, ports_per_unit=min(storage.ports_per_unit, max(worth, 1)))
    blocks = sum(ceil((system.planned or 1) / units.planned) for system in systems)
    ports = max(storage.ports_per_unit, blocks, min(cables, worth))
    return replace(storage, ports_per_unit=ports, least_ports=max(least, min(cables, ports)))


def _cabled(storage: StorageParameters, switch: SwitchModel, systems: Sequence[System]) -> Iterator[System]:
    """Yield the systems; blocks that get their ports with planned nodes are not there yet."""
    now, planned = (
        storage_ends(systems, storage_ports(storage, nodes), storage.ports_per_unit, port_bytes_s(switch))
        for nodes in (storage.nodes, storage.planned)
    )
    later = set(without_cable(systems, now)) - set(without_cable(systems, planned))
    for system in systems:
        coming = later & set(system.names)
        yield replace(system, cabled=len(system.names) - len(coming)) if coming and not system.paired else system


def port_bytes_s(switch: SwitchModel) -> float:
    """Return what a port of a switch carries."""
    return switch.speed_gbps * 1e9 / 8 if switch.speed_gbps else PORT_BYTES_S


def _units(compute: ComputeParameters | None, storage: StorageParameters | None, nodes: int) -> Units:
    parameters = storage or compute
    if parameters is None:
        return Units(1, 1, nodes, nodes)
    unit, reserved = parameters.unit, parameters.reserved_slots
    slots_planned = parameters.planned + reserved
    return Units(
        now=units_of(parameters.nodes + reserved, unit),
        planned=units_of(slots_planned, unit),
        slots=slots_of(slots_planned, unit),
        nodes=nodes,
    )


def _no_switch(model: NodeModel, kind: str) -> Exception:
    library, example = f"reference design for {model.name or 'this node'}", "switch: sb7800"
    if kind == "ethernet":
        library, example = f"{library} with Ethernet", "kind: ethernet, switch: sn5600"
    return refuse(
        f"no compute switch is named, and the library has no {library}",
        hint=f"write `fabrics: {{compute: {{{example}}}}}`, or `{{switch: {{ports: 36}}}}`",
        field="fabrics.compute.switch",
    )
