"""VLANs and addresses: private networks of equal size, cut from one, with the number of each member fixed for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network

from podwright.spec.problems import refuse

# The first addresses of a network are for gateways and services.
KEPT_ADDRESSES = 16


@dataclass(frozen=True, slots=True)
class NetworkRequest:
    """A network that is wanted: its VLAN (0: none, it is not Ethernet), and rows of members.

    A row is (planned, names): it keeps room for so many, so that what comes later in a row takes nobody's number. An
    empty name keeps the number of something that is planned.
    """

    name: str
    purpose: str
    vlan: int
    rows: Sequence[tuple[int, Sequence[str]]]

    @property
    def size(self) -> int:
        """Return how many addresses are needed when all that is planned is there."""
        return KEPT_ADDRESSES + sum(max(planned, len(names)) for planned, names in self.rows) + 2


@dataclass(frozen=True, slots=True)
class Network:
    """An IPv4 network of the pod, with the address of each member."""

    name: str
    purpose: str
    vlan: int
    subnet: IPv4Network
    addresses: dict[str, IPv4Address]


def cut_networks(text: str, requests: Sequence[NetworkRequest]) -> list[Network]:
    """Cut the networks from the one that is given, each large enough for the largest of them."""
    base = ipv4_network(text, "fabrics.management.network", "10.0.0.0/8")
    size = max(network.size for network in requests)
    prefix = 32 - (size - 1).bit_length()
    if prefix < base.prefixlen or len(requests) > 2 ** (prefix - base.prefixlen):
        raise refuse(
            f"{base} is too small for {len(requests)} networks of {size} addresses",
            hint=f"give it a /{prefix - (len(requests) - 1).bit_length()} or larger",
            field="fabrics.management.network",
        )
    cut = base.subnets(new_prefix=prefix)
    return [_network(network, next(cut)) for network in requests]


def _network(request: NetworkRequest, subnet: IPv4Network) -> Network:
    addresses: dict[str, IPv4Address] = {}
    first = int(subnet.network_address) + KEPT_ADDRESSES
    for planned, names in request.rows:
        addresses |= {name: IPv4Address(first + number) for number, name in enumerate(names) if name}
        first += max(planned, len(names))
    return Network(request.name, request.purpose, request.vlan, subnet, addresses)


def ipv4_network(text: str, field: str, example: str) -> IPv4Network:
    """Return the network that a field of the pod's file names."""
    try:
        return IPv4Network(text)
    except ValueError:
        raise refuse(f'"{text}" is not an IPv4 network', hint=f"write it like `{example}`", field=field) from None
