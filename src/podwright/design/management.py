"""The management network: ports for set-up and baseboard controllers (BMCs), the switches above them, VLANs, addresses.

Nodes fill switches of their own, in their order; what is not a node (switches, storage, management hosts) fills others,
fixed things first. So growth adds cables at the end of both rows and moves none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil

from podwright.design.floor import FEEDS, Floor
from podwright.design.management_ports import (
    ManagementPorts,
    controller_names,
    further_controllers,
    host_ports,
    other_ports,
    others_planned,
)
from podwright.design.management_tiers import (
    KEPT_PORTS,
    LEAST_PORTS,
    PLANES,
    SITE,
    Place,
    Tiers,
    tier_name,
    tier_switches,
)
from podwright.design.networks import Network, NetworkRequest, cut_networks
from podwright.design.requirements import Requirements
from podwright.design.wiring import Cable, Switch
from podwright.spec.hardware import ManagementFabric
from podwright.spec.problems import refuse

# The plane of a management switch that serves what is no node.
INFRA = 2


@dataclass(frozen=True, slots=True)
class Management:
    """The management network; `notes` says what could not be wired and why, `pdus` are the power feeds on it."""

    switches: list[Switch]
    cables: list[Cable]
    networks: list[Network]
    bmc_ports: int
    node_ports: int
    pdus: tuple[str, ...]
    notes: tuple[str, ...]

    def count(self, tier: str) -> int:
        """Count the switches of a tier."""
        return sum(switch.tier == tier for switch in self.switches)


class ManagementPlan:
    """Which port goes where, before it is known in how many racks all stands; switch numbers count from 0."""

    def __init__(self, requirements: Requirements, fabric: ManagementFabric, switches: Sequence[Switch]) -> None:
        assert fabric.switch is not None, "a management network is planned where its switch is known"
        self.requirements, self.switch, self.above = requirements, fabric.switch, fabric.aggregation
        # A switch without ports of their own for up-links keeps two of the others.
        self.kept = 0 if self.switch.uplink_ports else len(PLANES)
        self.ports = self.switch.ports - self.kept
        self.nodes = [host_ports(host, requirements.models[host]) for host in requirements.hosts]
        managed = [switch for switch in switches if requirements.has_management_port(switch.fabric)]
        self.others = list(other_ports(requirements, managed))
        # A device without a name is a block of storage that comes with later nodes: its port is kept.
        self.all = [*self.nodes, *(ports for ports in self.others if ports.device)]
        self.width = max((ports.slow for ports in self.nodes), default=1)
        _check_switches(self)
        self.per_switch = self.ports // self.width
        self.node_switches = ceil(len(self.nodes) / self.per_switch)
        self.planned_node_switches = ceil(requirements.planned / self.per_switch)
        self.other_switches = ceil(sum(ports.slow for ports in self.others) / self.ports)
        self.others_planned = others_planned(requirements, managed, self.others)
        self.planned_other_switches = ceil(self.others_planned / self.ports)
        self.controllers = list(further_controllers(requirements))
        # On the switches above, the fast ports of all planned nodes come first, then up-links.
        self.fast_width = ceil(max((ports.fast for ports in self.nodes), default=0) / 2)
        self.fast_places = requirements.planned * self.fast_width

    def central(self, slots: int) -> list[Switch]:
        """Return the switches that are not beside nodes when all planned nodes are there, in so many rack places."""
        leaves = [*self._other_leaves(self.planned_other_switches), *self._late_leaves(slots)]
        tiers = self._tiers(slots)
        if tiers is None:
            return leaves
        return [*leaves, *tier_switches(tiers.present(tiers.every))]

    def switches(self, slots: int) -> list[Switch]:
        """Return the switches that are there now; those of the power feeds are there for all places of racks."""
        tiers = self._tiers(slots)
        leaves = [*self.node_leaves(), *self._other_leaves(self._others_now(slots)), *self._late_leaves(slots)]
        return leaves if tiers is None else [*leaves, *tier_switches(self._present(tiers, slots))]

    def made(self, fabric: ManagementFabric, floor: Floor) -> Management:
        """Return the network of what stands on a floor."""
        late = [*self._power_cables(floor), *self._controller_cables(floor.slots)]
        cables = [*self._leaf_cables(), *late, *self._uplinks(floor.slots)]
        tiers = self._tiers(floor.slots)
        if tiers is not None:
            cables += [*self._fast_cables(tiers), *tiers.cables(self._present(tiers, floor.slots))]
        switches = self.switches(floor.slots)
        bmc = sum(ports.has_bmc for ports in self.all)
        return Management(
            switches=switches,
            cables=cables,
            networks=cut_networks(self.requirements.pod.name, fabric.network, *self._networks(switches, floor)),
            bmc_ports=bmc,
            node_ports=sum(ports.slow + ports.fast for ports in self.all) - bmc + sum(map(bool, self.controllers)),
            pdus=tuple(floor.pdus),
            notes=tuple(self._notes()),
        )

    def node_leaves(self) -> list[Switch]:
        """Return the switches that stand beside nodes."""
        return [
            Switch(_leaf(i), "management", "leaf", i * self.per_switch // self.requirements.unit + 1, 1, i + 1)
            for i in range(self.node_switches)
        ]

    def _present(self, tiers: Tiers, slots: int) -> list[set[Place]]:
        """Return the switches above the leaves that something of now is joined to."""
        ends = {cable.b for cable in [*self._uplinks(slots), *self._fast_cables(tiers)]}
        places = product(PLANES, range(tiers.pairs[0]))
        return tiers.present((plane, i * tiers.width) for plane, i in places if tier_name(0, plane, i) in ends)

    def _leaf_cables(self) -> Iterator[Cable]:
        for number, ports in enumerate(self.nodes):
            switch, index = divmod(number, self.per_switch)
            first = index * (self.ports // self.per_switch)
            for port in range(ports.slow):
                yield Cable("management", _kind(ports, port), ports.device, port + 1, _leaf(switch), first + port + 1)
        taken = 0
        for ports in self.others:
            for port in range(ports.slow):
                switch, index = divmod(taken, self.ports)
                taken += 1
                if not ports.device:
                    continue
                name = _other_leaf(switch)
                yield Cable("management", _kind(ports, port), ports.device, port + 1, name, index + 1)

    def _power_cables(self, floor: Floor) -> Iterator[Cable]:
        """Yield the cable of each power feed: to the last ports of a lone switch, else to switches of their own."""
        home = self._spare_home(floor.slots)
        for pdu, index in floor.pdus.items():
            switch, port = divmod(index, self.ports)
            name = _power_leaf(switch)
            if home:
                name, port = home, self.ports - 1 - index
            yield Cable("management", "power", pdu, 1, name, port + 1)

    def _controller_cables(self, slots: int) -> Iterator[Cable]:
        """Yield the cables of further controllers of storage: to other switches than the first where they can be."""
        home, ports = self._spare_home(slots), Counter[str]()
        for number, block in enumerate(self.controllers):
            ports[block] += 1
            switch, index = divmod(number, self.ports)
            name = _storage_leaf(switch)
            if home:
                name, index = home, self.ports - 1 - FEEDS * slots - number
            if block:
                yield Cable("management", "controller", block, ports[block] + 1, name, index + 1)

    def _spare_home(self, slots: int) -> str:
        """Return the switch with ports to spare for power feeds and controllers; nothing where they need their own."""
        planned = self.planned_node_switches, self.planned_other_switches
        name, used = _other_leaf(0), self.others_planned
        if planned == (1, 0):
            name, used = _leaf(0), self.requirements.planned * (self.ports // self.per_switch)
        has_home = planned[1] == 1 or planned == (1, 0)
        return name if has_home and used + FEEDS * slots + len(self.controllers) <= self.ports else ""

    def _late_leaves(self, slots: int) -> list[Switch]:
        """Return the switches of power feeds and of further controllers."""
        if self._spare_home(slots):
            return []
        rows = ((_power_leaf, FEEDS * slots), (_storage_leaf, len(self.controllers)))
        leaves: list[Switch] = []
        for name, devices in rows:
            count = ceil(devices / self.ports)
            first = len(leaves) + 1
            leaves += [Switch(name(i), "management", "leaf", 0, INFRA, first + i) for i in range(count)]
        return leaves

    def _others_now(self, slots: int) -> int:
        if self._spare_home(slots) == _other_leaf(0):
            return max(self.other_switches, 1)
        return self.other_switches

    def _other_leaves(self, count: int) -> list[Switch]:
        first = self.planned_node_switches
        return [Switch(_other_leaf(i), "management", "leaf", 0, INFRA, first + i + 1) for i in range(count)]

    def _uplinks(self, slots: int) -> Iterator[Cable]:
        """Yield the up-links of the leaves: one to each plane above, after the ports for devices, else to the site."""
        tiers, first = self._tiers(slots), self.fast_places
        places = [(_leaf(i), first + i) for i in range(self.node_switches)]
        first += self.planned_node_switches
        places += [(_other_leaf(i), first + i) for i in range(self._others_now(slots))]
        first += self.planned_other_switches
        places += [(switch.name, first + switch.number - 1) for switch in self._late_leaves(slots)]
        for name, index in places:
            for plane in PLANES[: self.switch.uplink_ports or len(PLANES)]:
                above, port = SITE, index * len(PLANES) + plane + 1
                if tiers is not None:
                    above, port = tiers.port(plane, index)
                kind = "site" if tiers is None else "uplink"
                yield Cable("management", kind, name, self.ports + plane + 1, above, port)

    def _fast_cables(self, tiers: Tiers) -> Iterator[Cable]:
        """Yield the cables of faster ports: straight to the switches above, in turn over the two planes."""
        places = [(ports, number * self.fast_width) for number, ports in enumerate(self.nodes)]
        first = tiers.planned - sum(_pairs_of(ports.fast) for ports in self.others)
        for ports in self.others:
            places.append((ports, first))
            first += _pairs_of(ports.fast)
        for ports, place in places:
            for port in range(ports.fast):
                above, where = tiers.port(port % 2, place + port // 2)
                yield Cable("management", "node", ports.device, ports.slow + port + 1, above, where)

    def _notes(self) -> Iterator[str]:
        fast = sum(ports.fast for ports in self.all)
        if fast and self.above is None:
            yield f"{fast} fast management ports are not wired: `fabrics: {{management: {{aggregation: sn3700}}}}`"
        elif self.above is None and self.node_switches + self.other_switches > 1:
            yield "up-links of the management switches go to the site's network, which joins them"

    def _tiers(self, slots: int) -> Tiers | None:
        """Return the tiers above the leaves; None where a lone leaf, or each of them, goes to the site's network."""
        leaves = self.planned_node_switches + self.planned_other_switches + len(self._late_leaves(slots))
        fast = sum(_pairs_of(ports.fast) for ports in self.others)
        if self.above is None or (leaves < 2 and not self.fast_places and not fast):
            return None
        return Tiers(self.above.ports, self.fast_places + leaves + fast)

    def _networks(self, switches: Sequence[Switch], floor: Floor) -> tuple[list[NetworkRequest], list[NetworkRequest]]:
        """Name the networks of the pod with their members: those of ever, and those that came later."""
        requirements, fabric = self.requirements, self.requirements.pod.management_fabric()
        assert fabric is not None, "there are no networks without a management fabric"
        first, now = fabric.first_vlan, {switch.name for switch in switches}
        bmcs = [ports.device for ports in self.others if ports.has_bmc]
        hosts = [(requirements.planned, requirements.hosts), (0, bmcs)]
        # An empty name keeps the address of a switch that is planned.
        infra = [_other_leaf(number) for number in range(self.planned_other_switches)]
        lowest = self._lowest_of_ever()
        members = [
            (self.others_planned, [ports.device for ports in self.others if not ports.has_bmc]),
            (self.planned_node_switches, [_leaf(number) for number in range(self.node_switches)]),
            (0, [name if name in now else "" for name in [*infra, *lowest]]),
        ]
        old = [
            NetworkRequest("bmc", "baseboard controllers", first, hosts),
            NetworkRequest("management", "set-up and logins", first + 1, hosts),
            NetworkRequest("switches", "switches and storage systems", first + 2, members),
        ]
        old += _storage_networks(requirements)
        own = {*infra, *lowest}
        joining = [switch.name for switch in self.central(floor.slots) if switch.name not in own]
        feeds = {index: name for name, index in floor.pdus.items()}
        places = [feeds.get(index, "") for index in range(FEEDS * floor.slots)]
        backbone = [name if name in now else "" for name in joining]
        new = [
            NetworkRequest("provision", "netboot and installation", first + 3, hosts),
            NetworkRequest("power", "power feeds of the racks", first + 4, [(0, places)]),
            NetworkRequest("backbone", "switches that join others", first + 5, [(0, backbone)]),
        ]
        if self.controllers:
            names = [(0, list(controller_names(self.controllers)))]
            new.append(NetworkRequest("controllers", "further controllers of storage systems", first + 6, names))
        return old, new

    def _lowest_of_ever(self) -> list[str]:
        """Return the aggregation switches that have their addresses among the other switches, in that order."""
        if self.above is None:
            return []
        places = self.fast_places + self.planned_node_switches + self.planned_other_switches
        tiers = Tiers(self.above.ports, places)
        return [switch.name for switch in tier_switches(tiers.present(tiers.every)[:1])]


def _storage_networks(requirements: Requirements) -> Iterator[NetworkRequest]:
    if requirements.storage is None:
        return
    systems = ((len(system.names_planned), system.names) for system in requirements.systems)
    members = [(requirements.planned, requirements.hosts), *systems]
    for port in range(1, requirements.storage.node_ports + 1):
        yield NetworkRequest(f"storage{port}", f"storage port {port} of each node", 0, members)


def _check_switches(plan: ManagementPlan) -> None:
    """Refuse switches whose ports do not do for one node, or for a tier above."""
    if plan.ports < plan.width:
        have = max(plan.ports, 0)
        raise refuse(
            f"a node has {plan.width} management ports, and a switch of {plan.switch.ports} has {have} for it",
            hint=f"use one with at least {plan.width + plan.kept} ports, such as sn2201",
            field="fabrics.management.switch",
        )
    if plan.above is not None and plan.above.ports < LEAST_PORTS:
        raise refuse(
            f"a switch of {plan.above.ports} ports cannot join others: {KEPT_PORTS} are for its peer and the next tier",
            hint=f"use one with at least {LEAST_PORTS} ports, such as sn3700",
            field="fabrics.management.aggregation",
        )


def _pairs_of(fast: int) -> int:
    """Return the ports that fast ports take in each of the two planes."""
    return ceil(fast / 2)


def _power_leaf(number: int) -> str:
    return f"mg-power-{number + 1:02d}"


def _storage_leaf(number: int) -> str:
    return f"mg-storage-{number + 1:02d}"


def _leaf(number: int) -> str:
    return f"mg-node-{number + 1:02d}"


def _other_leaf(number: int) -> str:
    return f"mg-infra-{number + 1:02d}"


def _kind(ports: ManagementPorts, port: int) -> str:
    is_bmc = ports.has_bmc and port == ports.slow - 1
    return "bmc" if is_bmc else "node"
