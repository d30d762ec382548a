"""VLANs and addresses: private networks cut from one, with the number of each member fixed for good.

A member has the same number in the IPv6 network that lies beside each: a /64 of the pod's own local prefix (RFC 4193).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from math import ceil

from podwright.spec.problems import refuse

# The first addresses of a network are for gateways and services.
KEPT_ADDRESSES = 16
# Of a local prefix 40 bits are the pod's own and 16 number its networks.
POD_BYTES, NETWORK_SHIFT = 5, 64


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
    """A network of the pod, with the address of each member."""

    name: str
    purpose: str
    vlan: int
    subnet: IPv4Network
    addresses: dict[str, IPv4Address]
    subnet6: IPv6Network

    def address6(self, member: str) -> IPv6Address:
        """Return the IPv6 address of a member."""
        return self.subnet6[int(self.addresses[member]) - int(self.subnet.network_address)]


def cut_networks(
    pod: str, text: str, requests: Sequence[NetworkRequest], later: Sequence[NetworkRequest]
) -> list[Network]:
    """Cut the networks from the one that is given, each large enough for the largest of them.

    Those of `later` have a size of their own and lie behind, so that they change nobody's address.
    """
    base = ipv4_network(text, "fabrics.management.network", "10.0.0.0/8")
    each, each_later = (1 << (32 - _prefix(requests)), 1 << (32 - _prefix(later)))
    first = ceil(len(requests) * each / each_later)
    needed = (first + len(later)) * each_later
    if needed > base.num_addresses:
        raise refuse(
            f"{base} is too small for {len(requests) + len(later)} networks of up to "
            f"{max(network.size for network in [*requests, *later])} addresses",
            hint=f"give it a /{32 - (needed - 1).bit_length()} or larger",
            field="fabrics.management.network",
        )
    start, networks = int(base.network_address), []
    for number, request in enumerate(requests):
        subnet = IPv4Network((start + number * each, _prefix(requests)))
        networks.append(_network(request, subnet, _subnet6(pod, number)))
    for number, request in enumerate(later):
        subnet = IPv4Network((start + (first + number) * each_later, _prefix(later)))
        networks.append(_network(request, subnet, _subnet6(pod, len(requests) + number)))
    return networks


def local_prefix(pod: str) -> IPv6Network:
    """Return the pod's own local IPv6 prefix: its name stands for the random number that the standard asks for."""
    own = int.from_bytes(sha256(pod.encode()).digest()[:POD_BYTES], "big")
    return IPv6Network(((0xFD << 120) | (own << 80), 48))


def _subnet6(pod: str, number: int) -> IPv6Network:
    return IPv6Network((int(local_prefix(pod).network_address) + (number << NETWORK_SHIFT), 64))


def _prefix(requests: Sequence[NetworkRequest]) -> int:
    """Return the length of the prefix that holds the largest of some networks."""
    size = max(network.size for network in requests)
    return 32 - (size - 1).bit_length()


def _network(request: NetworkRequest, subnet: IPv4Network, subnet6: IPv6Network) -> Network:
    addresses: dict[str, IPv4Address] = {}
    first = int(subnet.network_address) + KEPT_ADDRESSES
    for planned, names in request.rows:
        addresses |= {name: IPv4Address(first + number) for number, name in enumerate(names) if name}
        first += max(planned, len(names))
    return Network(request.name, request.purpose, request.vlan, subnet, addresses, subnet6)


def ipv4_network(text: str, field: str, example: str) -> IPv4Network:
    """Return the network that a field of the pod's file names."""
    try:
        return IPv4Network(text)
    except ValueError:
        raise refuse(f'"{text}" is not an IPv4 network', hint=f"write it like `{example}`", field=field) from None
