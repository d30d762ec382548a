"""NVUE commands of a switch, as Cumulus Linux 5.9 to 5.14 documents them: BGP unnumbered, RoCE without loss,
adaptive routing. They were not run on a switch."""

from __future__ import annotations

from collections.abc import Iterator

from podwright.design.exports.routed import RoutedSwitch, ranges
from podwright.design.exports.switch_ports import cumulus_port

RELEASES = "Cumulus Linux 5.9 to 5.14"


def nvue_commands(switch: RoutedSwitch) -> Iterator[str]:
    """Yield the lines of one switch."""
    router, model = switch.router, switch.model
    sessions = [cumulus_port(model, port) for port in switch.sessions]
    yield f"# {switch.name}, AS {router.asn}. NVUE commands for {RELEASES}; run them on the switch, then apply."
    yield f"nv set system hostname {switch.name}"
    yield f"nv set interface lo ip address {router.loopback}/32"
    if model.cage_ports > 1:
        yield f"nv set interface {ranges(switch.cages, 'swp')} link breakout {model.cage_ports}x"
    for link, far_end in zip(switch.links, switch.far_ends, strict=True):
        port = cumulus_port(model, link.cable.b_port)
        yield f"nv set interface {port} ip address {link.leaf_address}/31"
        yield f'nv set interface {port} description "{far_end}"'
    yield f"nv set router bgp autonomous-system {router.asn}"
    yield f"nv set router bgp router-id {router.loopback}"
    yield "nv set vrf default router bgp path-selection multipath aspath-ignore on"
    yield f"nv set vrf default router bgp address-family ipv4-unicast network {router.loopback}/32"
    if switch.links:
        yield "nv set vrf default router bgp address-family ipv4-unicast redistribute connected enable on"
    for name in sessions:
        yield f"nv set vrf default router bgp neighbor {name} remote-as external"
    yield "nv set qos roce mode lossless"
    yield "nv set router adaptive-routing enable on"
    for name in sessions:
        yield f"nv set interface {name} router adaptive-routing enable on"
    yield "nv config apply"
