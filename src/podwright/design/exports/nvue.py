"""What an Ethernet fabric needs beside its cables: commands for each switch, and addresses for each host port.

The commands are NVUE's as Cumulus Linux 5.9 to 5.14 documents them: BGP unnumbered, RoCE without loss, adaptive
routing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright.design.ethernet import HostLink, Router, Underlay
from podwright.design.exports.port_names import PortNames
from podwright.design.exports.tables import write_csv
from podwright.design.plan import Design

if TYPE_CHECKING:
    from podwright.spec import SwitchModel

RELEASES = "Cumulus Linux 5.9 to 5.14"


def ethernet_files(design: Design) -> dict[str, str]:
    """Return the files of an Ethernet compute fabric by path; none for another one."""
    switch, numbers = design.requirements.compute_switch, design.underlay
    if switch is None or numbers is None:
        return {}
    names = PortNames(design)
    files = {"bgp.csv": _routers(numbers), "compute-addresses.csv": _addresses(numbers, names, switch)}
    links: dict[str, list[HostLink]] = {}
    for link in numbers.links:
        links.setdefault(link.cable.b, []).append(link)
    for router in numbers.routers:
        lines = _commands(router, links.get(router.switch.name, []), numbers, names, switch)
        files[f"nvue/{router.switch.name}.sh"] = "\n".join(lines) + "\n"
    return files


def interface(switch: SwitchModel, port: int) -> str:
    """Return what Cumulus Linux calls a port: `swp17`, or `swp9s0` where its cage is split."""
    if switch.cage_ports == 1:
        return f"swp{port}"
    cage, place = divmod(port - 1, switch.cage_ports)
    return f"swp{cage + 1}s{place}"


def _commands(
    router: Router, links: list[HostLink], numbers: Underlay, names: PortNames, switch: SwitchModel
) -> Iterator[str]:
    sessions = [interface(switch, port) for port in numbers.sessions.get(router.switch.name, ())]
    yield f"# {router.switch.name}, AS {router.asn}. NVUE commands for {RELEASES}; run them on the switch, then apply."
    yield f"nv set system hostname {router.switch.name}"
    yield f"nv set interface lo ip address {router.loopback}/32"
    cages = sorted({(port - 1) // switch.cage_ports + 1 for port in _ports(router, links, numbers)})
    if switch.cage_ports > 1:
        yield f"nv set interface {_range(cages)} link breakout {switch.cage_ports}x"
    for link in links:
        port = interface(switch, link.cable.b_port)
        yield f"nv set interface {port} ip address {link.leaf_address}/31"
        yield f'nv set interface {port} description "{link.cable.a} {names.ends(link.cable)[0]}"'
    yield f"nv set router bgp autonomous-system {router.asn}"
    yield f"nv set router bgp router-id {router.loopback}"
    yield "nv set vrf default router bgp path-selection multipath aspath-ignore on"
    yield f"nv set vrf default router bgp address-family ipv4-unicast network {router.loopback}/32"
    if links:
        yield "nv set vrf default router bgp address-family ipv4-unicast redistribute connected enable on"
    for name in sessions:
        yield f"nv set vrf default router bgp neighbor {name} remote-as external"
    yield "nv set qos roce mode lossless"
    yield "nv set router adaptive-routing enable on"
    for name in sessions:
        yield f"nv set interface {name} router adaptive-routing enable on"
    yield "nv config apply"


def _ports(router: Router, links: list[HostLink], numbers: Underlay) -> list[int]:
    return [link.cable.b_port for link in links] + list(numbers.sessions.get(router.switch.name, ()))


def _range(cages: list[int]) -> str:
    """Return `swp1-8,swp33`: neighbours in one part."""
    parts: list[list[int]] = []
    for cage in cages:
        if parts and cage == parts[-1][1] + 1:
            parts[-1][1] = cage
        else:
            parts.append([cage, cage])
    return ",".join(f"swp{first}" if first == last else f"swp{first}-{last}" for first, last in parts)


def _routers(numbers: Underlay) -> str:
    rows = []
    for router in numbers.routers:
        sessions = len(numbers.sessions.get(router.switch.name, ()))
        rows.append((router.switch.name, router.switch.tier, router.asn, router.loopback, router.block or "", sessions))
    return write_csv(("switch", "tier", "asn", "loopback", "host_network", "sessions"), rows)


def _addresses(numbers: Underlay, names: PortNames, switch: SwitchModel) -> str:
    rows = []
    for link in numbers.links:
        host_port = names.ends(link.cable)[0]
        leaf_port = interface(switch, link.cable.b_port)
        addresses = (f"{link.host_address}/31", link.leaf_address)
        rows.append((link.cable.a, host_port, *addresses, link.cable.b, leaf_port))
    return write_csv(("host", "port", "address", "gateway", "leaf", "leaf_port"), rows)
