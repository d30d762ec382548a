"""The management network: ports for set-up and baseboard controllers (BMCs), the switches above them, VLANs, addresses.

Nodes fill switches of their own, in their order; what is not a node (switches, storage, management hosts) fills others,
fixed things first. So growth adds cables at the end of both rows and moves none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from podwright.design.networks import Network, NetworkRequest, cut_networks
from podwright.design.requirements import Requirements
from podwright.design.speeds import FASTEST_TWISTED_GBPS
from podwright.design.wiring import Cable, Switch
from podwright.spec import NodeModel, SwitchModel

# Kept on each aggregation switch for its peer and for the site's network.
KEPT_PORTS = 2


@dataclass(frozen=True, slots=True)
class Management:
    """The management network; `notes` says what could not be wired and why.

    `central` are its switches that belong to no unit, as there will be of them when all planned nodes are there.
    """

    switches: list[Switch]
    cables: list[Cable]
    networks: list[Network]
    bmc_ports: int
    node_ports: int
    central: list[Switch]
    notes: tuple[str, ...]

    def count(self, tier: str) -> int:
        """Count the switches of a tier."""
        return sum(switch.tier == tier for switch in self.switches)


@dataclass(frozen=True, slots=True)
class _Ports:
    """The management ports of one device: twisted pair, with the BMC's last, and fast ones."""

    device: str
    slow: int
    fast: int
    has_bmc: bool


def design_management(requirements: Requirements, switches: Sequence[Switch]) -> Management | None:
    """Design the management network for all nodes, the given switches, and what else stands in the racks."""
    fabric = requirements.pod.management_fabric()
    if fabric is None or fabric.switch is None:
        return None
    nodes = [_ports(host, requirements.models[host]) for host in requirements.hosts]
    managed = [switch for switch in switches if requirements.has_management_port(switch.fabric)]
    plan = _Plan(requirements, fabric.switch, fabric.aggregation, nodes, list(_others(requirements, managed)))
    others_planned = _others_planned(requirements, managed, plan)
    central = plan.central(ceil(others_planned / fabric.switch.ports))
    cables = [*plan.leaf_cables(), *plan.uplinks(), *plan.fast_cables()]
    bmc = sum(ports.has_bmc for ports in plan.all)
    return Management(
        switches=plan.switches(),
        cables=cables,
        networks=cut_networks(fabric.network, _networks(requirements, plan, others_planned, central)),
        bmc_ports=bmc,
        node_ports=sum(ports.slow + ports.fast for ports in plan.all) - bmc,
        central=central,
        notes=tuple(plan.notes()),
    )


class _Plan:
    """Which port goes where; switch numbers count from 0."""

    def __init__(
        self,
        requirements: Requirements,
        switch: SwitchModel,
        above: SwitchModel | None,
        nodes: list[_Ports],
        others: list[_Ports],
    ) -> None:
        self.switch, self.above, self.nodes, self.others = switch, above, nodes, others
        # A device without a name is a block of storage that comes with later nodes: its port is kept.
        self.all = [*nodes, *(ports for ports in others if ports.device)]
        width = max((ports.slow for ports in nodes), default=1)
        self.per_switch = max(switch.ports // width, 1)
        self.node_switches = ceil(len(nodes) / self.per_switch)
        self.planned_node_switches = ceil(requirements.planned / self.per_switch)
        self.unit = requirements.unit
        self.other_switches = ceil(sum(ports.slow for ports in others) / switch.ports)
        # On the switches above, the fast ports of all planned nodes come first, then up-links.
        self.fast_width = ceil(max((ports.fast for ports in nodes), default=0) / 2)
        self.fast_places = requirements.planned * self.fast_width

    def leaf_cables(self) -> Iterator[Cable]:
        for number, ports in enumerate(self.nodes):
            switch, index = divmod(number, self.per_switch)
            first = index * (self.switch.ports // self.per_switch)
            for port in range(ports.slow):
                yield Cable("management", _kind(ports, port), ports.device, port + 1, _leaf(switch), first + port + 1)
        taken = 0
        for ports in self.others:
            for port in range(ports.slow):
                switch, index = divmod(taken, self.switch.ports)
                taken += 1
                if not ports.device:
                    continue
                name = _other_leaf(switch)
                yield Cable("management", _kind(ports, port), ports.device, port + 1, name, index + 1)

    def uplinks(self) -> Iterator[Cable]:
        """Yield one up-link to each of the two planes above, after the ports for devices."""
        if not self._aggregates:
            return
        first = self.fast_places
        places = [(_leaf(i), first + i) for i in range(self.node_switches)]
        places += [(_other_leaf(i), first + self.planned_node_switches + i) for i in range(self.other_switches)]
        for name, index in places:
            for plane in range(min(2, self.switch.uplink_ports)):
                above, port = self._above(plane, index)
                yield Cable("management", "uplink", name, self.switch.ports + plane + 1, above, port)

    def fast_cables(self) -> Iterator[Cable]:
        """Yield the cables of faster ports: straight to the switches above, in turn over the two planes."""
        if self.above is None:
            return
        for number, ports in enumerate(self.nodes):
            for port in range(ports.fast):
                index = number * self.fast_width + port // 2
                above, where = self._above(port % 2, index)
                yield Cable("management", "node", ports.device, ports.slow + port + 1, above, where)

    def switches(self) -> list[Switch]:
        leaves = [
            Switch(_leaf(i), "management", "leaf", i * self.per_switch // self.unit + 1, 1, i + 1)
            for i in range(self.node_switches)
        ]
        leaves += [
            Switch(_other_leaf(i), "management", "leaf", 0, 2, self.planned_node_switches + i + 1)
            for i in range(self.other_switches)
        ]
        above = sorted({cable.b for cable in [*self.uplinks(), *self.fast_cables()]})
        return leaves + [Switch(name, "management", "aggregation", 0, 0, i + 1) for i, name in enumerate(above)]

    def central(self, infra: int) -> list[Switch]:
        """Return the switches that are not beside nodes, with so many planned ones for what is no node."""
        switches = [Switch(_other_leaf(i), "management", "leaf", 0, 2, i + 1) for i in range(infra)]
        if self.above is not None:
            places = self.fast_places + self.planned_node_switches + infra
            names: set[str] = set()
            for index in range(places):
                names |= {self._above(plane, index)[0] for plane in (0, 1)}
            switches += [Switch(name, "management", "aggregation", 0, 0, i + 1) for i, name in enumerate(sorted(names))]
        return switches

    def notes(self) -> Iterator[str]:
        fast = sum(ports.fast for ports in self.all)
        if fast and self.above is None:
            yield f"{fast} fast management ports are not wired: `fabrics: {{management: {{aggregation: sn3700}}}}`"
        elif self.above is None and self.node_switches + self.other_switches > 1:
            yield "up-links of the management switches go to the site's own network"
        above = sum(switch.tier == "aggregation" for switch in self.switches())
        if above > 2:
            yield (
                f"{above} aggregation switches are not joined to each other: {KEPT_PORTS} ports of each are kept for a "
                "peer and for the site's own network, which must join them"
            )

    @property
    def _aggregates(self) -> bool:
        return self.above is not None and self.node_switches + self.other_switches > 1

    def _above(self, plane: int, index: int) -> tuple[str, int]:
        ports = 1
        if self.above is not None:
            ports = max(self.above.ports - KEPT_PORTS, 1)
        number, port = divmod(index, ports)
        return f"mg-agg-{plane + 1}-{number + 1:02d}", port + 1


def _leaf(number: int) -> str:
    return f"mg-node-{number + 1:02d}"


def _other_leaf(number: int) -> str:
    return f"mg-infra-{number + 1:02d}"


def _kind(ports: _Ports, port: int) -> str:
    is_bmc = ports.has_bmc and port == ports.slow - 1
    return "bmc" if is_bmc else "node"


def _ports(host: str, model: NodeModel) -> _Ports:
    speeds = [nic.speed_gbps for nic in model.nics if nic.kind == "management"]
    slow = sum(speed <= FASTEST_TWISTED_GBPS for speed in speeds)
    return _Ports(host, slow + 1, len(speeds) - slow, has_bmc=True)


def _others(requirements: Requirements, switches: Sequence[Switch]) -> Iterator[_Ports]:
    """Yield what is no node of the fabrics; things whose number is fixed come first."""
    own = set(requirements.hosts)
    for host in requirements.pod.hosts():
        if host not in own:
            yield _ports(host, requirements.models[host])
    yield from (_Ports(name, 2, 0, has_bmc=True) for name in requirements.manager_models)
    names = [switch.name for switch in switches if switch.tier != "leaf"]
    coming = _coming(requirements)
    for system in requirements.systems:
        if not system.paired:
            names += system.names_planned
    yield from (_Ports("" if name in coming else name, 1, 0, has_bmc=False) for name in names)
    leaves: dict[int, list[str]] = defaultdict(list)
    for switch in switches:
        if switch.tier == "leaf":
            leaves[switch.unit].append(switch.name)
    said: set[str] = set()
    for unit in sorted({*leaves, *range(1, _units(requirements) + 1)}):
        blocks: list[str] = []
        for system in requirements.systems:
            if system.paired and unit:
                blocks += system.of_unit(unit - 1)
        for name in [*leaves[unit], *(block for block in blocks if block not in said)]:
            yield _Ports("" if name in coming else name, 1, 0, has_bmc=False)
        said.update(blocks)


def _coming(requirements: Requirements) -> set[str]:
    """Return the blocks that keep their ports and addresses, and come with later nodes."""
    names: set[str] = set()
    for system in requirements.systems:
        names |= set(system.names_planned[: system.room]) - set(system.names)
    return names


def _units(requirements: Requirements) -> int:
    if not requirements.systems:
        return 0
    return requirements.systems[0].units.now


def _others_planned(requirements: Requirements, switches: Sequence[Switch], plan: _Plan) -> int:
    """Count the ports of all that is no node when the planned nodes are there."""
    leaves = sum(switch.tier == "leaf" for switch in switches)
    blocks = sum(len(system.names_planned) - system.room for system in requirements.systems)
    return sum(ports.slow for ports in plan.others) - leaves + requirements.managed_leaves_planned + blocks


def _networks(
    requirements: Requirements, plan: _Plan, others_planned: int, central: Sequence[Switch]
) -> list[NetworkRequest]:
    """Name the networks of the pod with their members."""
    fabric = requirements.pod.management_fabric()
    assert fabric is not None, "there are no networks without a management fabric"
    first = fabric.first_vlan
    hosts = [(requirements.planned, requirements.hosts), (0, [ports.device for ports in plan.others if ports.has_bmc])]
    names_now = {switch.name for switch in plan.switches()}
    # An empty name keeps the address of a switch that is planned.
    central_names = [switch.name if switch.name in names_now else "" for switch in central]
    switches = [
        (others_planned, [ports.device for ports in plan.others if not ports.has_bmc]),
        (plan.planned_node_switches, [_leaf(number) for number in range(plan.node_switches)]),
        (0, central_names),
    ]
    networks = [
        NetworkRequest("bmc", "baseboard controllers", first, hosts),
        NetworkRequest("management", "set-up and logins", first + 1, hosts),
        NetworkRequest("switches", "switches and storage systems", first + 2, switches),
    ]
    if requirements.storage:
        systems = ((len(system.names_planned), system.names) for system in requirements.systems)
        storage = [(requirements.planned, requirements.hosts), *systems]
        for port in range(1, requirements.storage.node_ports + 1):
            networks.append(NetworkRequest(f"storage{port}", f"storage port {port} of each node", 0, storage))
    return networks
