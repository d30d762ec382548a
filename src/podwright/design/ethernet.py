"""The routed side of an Ethernet fabric: an autonomous system and a loopback for each switch, a /31 for each host port.

Switches speak BGP unnumbered to each other, so that only hosts and loopbacks have addresses. Every number follows from
a place in the fabric as it is planned: growth gives new ones and changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from typing import TYPE_CHECKING

from podwright.design.networks import ipv4_network
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.design.requirements import Requirements
    from podwright.design.sizing import ComputeParameters, ComputeSize
    from podwright.design.wiring import Cable, Switch, Wired
    from podwright.spec import ComputeFabric

# Of a fabric's network a sixteenth is for loopbacks, the rest for host ports.
LOOPBACK_BITS = 4
# Numbers after the first one: the core has it, planes of spines come next, leaves after these.
SPINE_ASN, LEAF_ASN = 1, 10_000
# Numbers for private use (RFC 6996), of two and of four bytes.
PRIVATE_ASNS = ((64_512, 65_534), (4_200_000_000, 4_294_967_294))


@dataclass(frozen=True, slots=True)
class Router:
    """A switch of the fabric: its autonomous system, its loopback, and of a leaf the network of its hosts."""

    switch: Switch
    asn: int
    loopback: IPv4Address
    block: IPv4Network | None


@dataclass(frozen=True, slots=True)
class HostLink:
    """A port of a host: the cable to its leaf, and the addresses of both ends."""

    cable: Cable
    leaf_address: IPv4Address
    host_address: IPv4Address


@dataclass(frozen=True, slots=True)
class Underlay:
    """All routers and host links of a fabric, and the ports of each router that speak BGP."""

    routers: tuple[Router, ...]
    links: tuple[HostLink, ...]
    sessions: dict[str, tuple[int, ...]]


def is_ethernet(requirements: Requirements) -> bool:
    """Return whether the compute fabric is Ethernet."""
    fabric = requirements.pod.compute_fabric()
    return requirements.compute is not None and fabric is not None and fabric.kind == "ethernet"


def check_ethernet(requirements: Requirements, size: ComputeSize) -> None:
    """Refuse an Ethernet fabric whose planes or numbers do not work out."""
    fabric, parameters = requirements.pod.compute_fabric(), requirements.compute
    if fabric is None or parameters is None or fabric.kind != "ethernet":
        return
    _check_planes(parameters, size)
    leaves = size.plane_leaves * max(size.groups, 1) * (parameters.rails if size.groups else parameters.planes)
    _check_numbers(fabric, _network(fabric), max(leaves, size.leaf), _block(size))


def _check_planes(fabric: ComputeParameters, size: ComputeSize) -> None:
    """Refuse planes that would need a core: each would have one of its own, which is not designed."""
    if fabric.planes == 1 or not size.groups:
        return
    most = fabric.switch_ports // (fabric.rails // fabric.planes) * fabric.unit
    raise refuse(
        f"{fabric.planned:,} nodes in {fabric.planes} planes need a third tier, which is not designed: "
        f"two tiers hold {most:,}",
        hint=f"plan at most {most:,} nodes, or write `planes: 1`",
        field="fabrics.compute.planes",
    )


def underlay(requirements: Requirements, size: ComputeSize, wired: Wired) -> Underlay:
    """Number the switches and the host ports of an Ethernet fabric."""
    fabric = requirements.pod.compute_fabric()
    assert fabric is not None, "a fabric that is wired is described"
    routers = tuple(_routers(fabric, _network(fabric), wired.switches, _block(size)))
    blocks = {router.switch.name: router.block for router in routers}
    return Underlay(routers, tuple(_links(wired.cables, blocks)), _sessions(wired.cables))


def _block(size: ComputeSize) -> int:
    """Return how many addresses the hosts of a leaf have: two for each of its ports, as a network can hold them."""
    return 2 << (size.leaf_down - 1).bit_length()


def _routers(fabric: ComputeFabric, base: IPv4Network, switches: Sequence[Switch], block: int) -> Iterator[Router]:
    loopbacks, hosts = _loopbacks(base), int(_hosts(base))
    quarter = loopbacks.num_addresses // 4
    # Each tier has a part of the loopbacks, so that a leaf that comes later takes no spine's.
    first = {"leaf": 2 * quarter, "spine": quarter, "core": 0}
    for switch in switches:
        loopback = loopbacks[first[switch.tier] + switch.number]
        network = None
        if switch.tier == "leaf":
            start = hosts + (switch.number - 1) * block
            network = IPv4Network((start, 32 - (block - 1).bit_length()))
        yield Router(switch, _asn(fabric, switch), loopback, network)


def _asn(fabric: ComputeFabric, switch: Switch) -> int:
    """Return a switch's number: a leaf has its own, the spines of a plane share one, and so do all cores."""
    if switch.tier == "leaf":
        return fabric.first_asn + LEAF_ASN + switch.number
    if switch.tier == "spine":
        return fabric.first_asn + SPINE_ASN + switch.plane
    return fabric.first_asn


def _links(cables: Sequence[Cable], blocks: dict[str, IPv4Network | None]) -> Iterator[HostLink]:
    for cable in cables:
        block = blocks.get(cable.b)
        if cable.kind == "node_leaf" and block is not None:
            pair = 2 * (cable.b_port - 1)
            yield HostLink(cable, block[pair], block[pair + 1])


def _sessions(cables: Sequence[Cable]) -> dict[str, tuple[int, ...]]:
    ports: dict[str, list[int]] = {}
    for cable in cables:
        if cable.kind in ("leaf_spine", "spine_core"):
            ports.setdefault(cable.a, []).append(cable.a_port)
            ports.setdefault(cable.b, []).append(cable.b_port)
    return {name: tuple(sorted(numbers)) for name, numbers in ports.items()}


def _network(fabric: ComputeFabric) -> IPv4Network:
    return ipv4_network(fabric.network, "fabrics.compute.network", "172.16.0.0/12")


def _loopbacks(base: IPv4Network) -> IPv4Network:
    return IPv4Network((int(base.network_address), min(base.prefixlen + LOOPBACK_BITS, 32)))


def _hosts(base: IPv4Network) -> IPv4Address:
    return _loopbacks(base).broadcast_address + 1


def _check_numbers(fabric: ComputeFabric, base: IPv4Network, leaves: int, block: int) -> None:
    """Refuse a network or a range of numbers that is too small for the planned leaves."""
    room = int(base.broadcast_address) + 1 - int(_hosts(base))
    needed = leaves * block
    if room < needed or _loopbacks(base).num_addresses < 4 * (leaves + 1):
        bits = (max(needed * 16 // 15, 4 * (leaves + 1) << LOOPBACK_BITS)).bit_length()
        raise refuse(
            f"{base} is too small for {leaves} leaves of {block} addresses",
            hint=f"give it a /{32 - bits} or larger",
            field="fabrics.compute.network",
        )
    last = fabric.first_asn + LEAF_ASN + leaves
    if not any(low <= fabric.first_asn and last <= high for low, high in PRIVATE_ASNS):
        raise refuse(
            f"{fabric.first_asn} to {last} are not all numbers for private use",
            hint="leave it out: 4200000000 is the first of them",
            field="fabrics.compute.first_asn",
        )
