"""The management network: ports for set-up and baseboard controllers (BMCs), the switches above them, VLANs, addresses.

Nodes fill switches of their own, in their order; what is not a node (switches, storage, management hosts) fills others,
fixed things first. So growth adds cables at the end of both rows and moves none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from math import ceil

from podwright.design.asks import Asked
from podwright.design.wiring import Cable, Switch
from podwright.spec import NodeModel, SwitchModel
from podwright.spec.problems import refuse

# Twisted pair steps down to what the switch has; anything faster needs a port of its own kind.
FASTEST_TWISTED_GBPS = 10
# Kept on each aggregation switch for its peer and for the site's network.
KEPT_PORTS = 2
# The first addresses of a network are for gateways and services.
KEPT_ADDRESSES = 16


@dataclass(frozen=True, slots=True)
class Network:
    """An IPv4 network of the pod: what is in it, its VLAN (0: none, it is not Ethernet) and its addresses."""

    name: str
    purpose: str
    vlan: int
    subnet: IPv4Network
    members: tuple[str, ...]

    def address(self, number: int) -> IPv4Address:
        """Gives the address of a member by its number, from 0."""
        return self.subnet[KEPT_ADDRESSES + number]


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
        """Counts the switches of a tier."""
        return sum(switch.tier == tier for switch in self.switches)


@dataclass(frozen=True, slots=True)
class _Ports:
    """The management ports of one device: twisted pair, with the BMC's last, and fast ones."""

    device: str
    slow: int
    fast: int
    has_bmc: bool


def design_management(asked: Asked, switches: Sequence[Switch]) -> Management | None:
    """Designs the management network for all nodes, the given switches, and what else stands in the racks."""
    fabric = asked.pod.management_fabric()
    if fabric is None or fabric.switch is None:
        return None
    nodes = [_ports(host, asked.models[host]) for host in asked.hosts]
    plan = _Plan(asked, fabric.switch, fabric.aggregation, nodes, list(_others(asked, switches)))
    planned = asked.planned
    first = fabric.first_vlan
    networks = _networks(
        _base(fabric.network),
        [
            ("bmc", "baseboard controllers", first, planned + 64, [p.device for p in plan.all if p.has_bmc]),
            ("management", "set-up and logins", first + 1, planned + 64, [p.device for p in plan.all if p.has_bmc]),
            ("switches", "switch management", first + 2, 2 * planned + 64, [s.name for s in switches]),
            *_storage_networks(asked, planned),
        ],
    )
    cables = [*plan.leaf_cables(), *plan.uplinks(), *plan.fast_cables()]
    bmc = sum(ports.has_bmc for ports in plan.all)
    return Management(
        switches=plan.switches(),
        cables=cables,
        networks=networks,
        bmc_ports=bmc,
        node_ports=sum(ports.slow + ports.fast for ports in plan.all) - bmc,
        central=plan.central(ceil(_others_planned(asked, switches, plan) / fabric.switch.ports)),
        notes=tuple(plan.notes()),
    )


class _Plan:
    """Which port goes where; switch numbers count from 0."""

    def __init__(
        self,
        asked: Asked,
        switch: SwitchModel,
        above: SwitchModel | None,
        nodes: list[_Ports],
        others: list[_Ports],
    ) -> None:
        self.switch, self.above, self.nodes, self.others = switch, above, nodes, others
        self.all = [*nodes, *others]
        width = max((ports.slow for ports in nodes), default=1)
        self.per_switch = max(switch.ports // width, 1)
        self.node_switches = ceil(len(nodes) / self.per_switch)
        self.planned_node_switches = ceil(asked.planned / self.per_switch)
        self.unit = asked.unit
        self.other_switches = ceil(sum(ports.slow for ports in others) / switch.ports)
        # On the switches above, the fast ports of all planned nodes come first, then up-links.
        self.fast_width = ceil(max((ports.fast for ports in nodes), default=0) / 2)
        self.fast_places = asked.planned * self.fast_width

    def leaf_cables(self) -> Iterator[Cable]:
        for number, ports in enumerate(self.nodes):
            switch, place = divmod(number, self.per_switch)
            first = place * (self.switch.ports // self.per_switch)
            for port in range(ports.slow):
                yield Cable("management", _kind(ports, port), ports.device, port + 1, _leaf(switch), first + port + 1)
        taken = 0
        for ports in self.others:
            for port in range(ports.slow):
                switch, place = divmod(taken, self.switch.ports)
                taken += 1
                name = _other_leaf(switch)
                yield Cable("management", _kind(ports, port), ports.device, port + 1, name, place + 1)

    def uplinks(self) -> Iterator[Cable]:
        """One up-link to each of the two planes above, after the ports for devices."""
        if not self._aggregates:
            return
        first = self.fast_places
        places = [(_leaf(i), first + i) for i in range(self.node_switches)]
        places += [(_other_leaf(i), first + self.planned_node_switches + i) for i in range(self.other_switches)]
        for name, place in places:
            for plane in range(min(2, self.switch.uplink_ports)):
                above, port = self._above(plane, place)
                yield Cable("management", "uplink", name, self.switch.ports + plane + 1, above, port)

    def fast_cables(self) -> Iterator[Cable]:
        """Ports faster than twisted pair go straight to the switches above, in turn over the two planes."""
        if self.above is None:
            return
        for number, ports in enumerate(self.nodes):
            for port in range(ports.fast):
                place = number * self.fast_width + port // 2
                above, where = self._above(port % 2, place)
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
        """Gives the switches that are not beside nodes, with so many planned ones for what is no node."""
        found = [Switch(_other_leaf(i), "management", "leaf", 0, 2, i + 1) for i in range(infra)]
        if self.above is not None:
            places = self.fast_places + self.planned_node_switches + infra
            names = sorted({self._above(plane, place)[0] for plane in (0, 1) for place in range(places)})
            found += [Switch(name, "management", "aggregation", 0, 0, i + 1) for i, name in enumerate(names)]
        return found

    def notes(self) -> Iterator[str]:
        fast = sum(ports.fast for ports in self.all)
        if fast and self.above is None:
            yield f"{fast} fast management ports are not wired: `fabrics: {{management: {{aggregation: sn3700}}}}`"
        elif self.above is None and self.node_switches + self.other_switches > 1:
            yield "up-links of the management switches go to the site's own network"

    @property
    def _aggregates(self) -> bool:
        return self.above is not None and self.node_switches + self.other_switches > 1

    def _above(self, plane: int, place: int) -> tuple[str, int]:
        ports = self.above.ports if self.above else 1
        number, port = divmod(place, max(ports - KEPT_PORTS, 1))
        return f"mg-agg-{plane + 1}-{number + 1:02d}", port + 1


def _leaf(number: int) -> str:
    return f"mg-node-{number + 1:02d}"


def _other_leaf(number: int) -> str:
    return f"mg-infra-{number + 1:02d}"


def _kind(ports: _Ports, port: int) -> str:
    return "bmc" if ports.has_bmc and port == ports.slow - 1 else "node"


def _ports(host: str, model: NodeModel) -> _Ports:
    speeds = [nic.speed_gbps for nic in model.nics if nic.kind == "management"]
    slow = sum(speed <= FASTEST_TWISTED_GBPS for speed in speeds)
    return _Ports(host, slow + 1, len(speeds) - slow, has_bmc=True)


def _others(asked: Asked, switches: Sequence[Switch]) -> Iterator[_Ports]:
    """What is no node of the fabrics; things whose number is fixed first."""
    own = set(asked.hosts)
    for host in asked.pod.hosts():
        if host not in own:
            yield _ports(host, asked.models[host])
    yield from (_Ports(f"ufm{i + 1}", 2, 0, has_bmc=True) for i in range(asked.managers))
    names = [switch.name for switch in switches if switch.tier != "leaf"]
    names += [name for system in asked.systems if not system.paired for name in system.names]
    yield from (_Ports(name, 1, 0, has_bmc=False) for name in names)
    leaves: dict[int, list[str]] = defaultdict(list)
    for switch in switches:
        if switch.tier == "leaf":
            leaves[switch.unit].append(switch.name)
    said: set[str] = set()
    for unit in sorted({*leaves, *range(1, _units(asked) + 1)}):
        blocks = [name for system in asked.systems if system.paired and unit for name in system.of_unit(unit - 1)]
        for name in [*leaves[unit], *(block for block in blocks if block not in said)]:
            yield _Ports(name, 1, 0, has_bmc=False)
        said.update(blocks)


def _units(asked: Asked) -> int:
    return asked.systems[0].units.now if asked.systems else 0


def _others_planned(asked: Asked, switches: Sequence[Switch], plan: _Plan) -> int:
    """Counts the ports of all that is no node when the planned units are there."""
    leaves = sum(switch.tier == "leaf" for switch in switches)
    now = sum(ports.slow for ports in plan.others)
    units = max((switch.unit for switch in switches), default=0) or 1
    blocks = sum(len(system.names_planned) - len(system.names) for system in asked.systems)
    return now + ceil(leaves * asked.units_planned / units) - leaves + blocks


def _storage_networks(asked: Asked, planned: int) -> Iterator[tuple[str, str, int, int, list[str]]]:
    width = asked.storage.node_ports if asked.storage else 0
    for port in range(width):
        members = [*asked.hosts, *(name for system in asked.systems for name in system.names)]
        yield f"storage{port + 1}", f"storage port {port + 1} of each node", 0, planned + 256, members


def _base(text: str) -> IPv4Network:
    try:
        return IPv4Network(text)
    except ValueError:
        raise refuse(
            f'"{text}" is not an IPv4 network', hint="write it like `10.0.0.0/8`", field="fabrics.management.network"
        ) from None


def _networks(base: IPv4Network, wanted: Iterable[tuple[str, str, int, int, list[str]]]) -> list[Network]:
    """Cuts networks of equal size, large enough for the largest of them with what is planned."""
    rows = list(wanted)
    size = max(max(count, len(members)) + KEPT_ADDRESSES + 2 for _, _, _, count, members in rows)
    prefix = 32 - (size - 1).bit_length()
    if prefix < base.prefixlen or len(rows) > 2 ** (prefix - base.prefixlen):
        need = prefix - (len(rows) - 1).bit_length()
        raise refuse(
            f"{base} is too small for {len(rows)} networks of {size} addresses",
            hint=f"give it a /{need} or larger",
            field="fabrics.management.network",
        )
    cut = base.subnets(new_prefix=prefix)
    return [Network(name, purpose, vlan, next(cut), tuple(members)) for name, purpose, vlan, _, members in rows]
