"""SONiC commands of a switch, as its command reference and FRR document them: BGP unnumbered, lossless queues.

They were not run on a switch. How cages are split is left to the switch's HwSKU: the names of its modes differ from
platform to platform.
"""

from __future__ import annotations

from collections.abc import Iterator

from podwright.design.exports.routed import RoutedSwitch, ranges
from podwright.design.exports.switch_ports import sonic_port

MAX_PATHS = 64


def sonic_commands(switch: RoutedSwitch) -> Iterator[str]:
    """Yield the lines of one switch."""
    router, model = switch.router, switch.model
    yield f"# {switch.name}, AS {router.asn}. Commands of SONiC with FRR; run them on the switch as root."
    if model.cage_ports > 1:
        yield f"# Cages {ranges(switch.cages)} are split into {model.cage_ports} ports of {model.speed_gbps:g} Gb/s:"
        yield "# choose such a HwSKU, or split them with `config interface breakout`, before this."
    yield f"config hostname {switch.name}"
    # Else SONiC writes FRR's configuration again from its own at every reload.
    yield 'sonic-db-cli CONFIG_DB hset "DEVICE_METADATA|localhost" docker_routing_config_mode split'
    yield "config loopback add Loopback0"
    yield f"config interface ip add Loopback0 {router.loopback}/32"
    for link, far_end in zip(switch.links, switch.far_ends, strict=True):
        port = sonic_port(model, link.cable.b_port)
        yield f"config interface ip add {port} {link.leaf_address}/31"
        yield f'sonic-db-cli CONFIG_DB hset "PORT|{port}" description "{far_end}"'
    sessions = [sonic_port(model, port) for port in switch.sessions]
    for name in sessions:
        yield f"config interface ipv6 enable use-link-local-only {name}"
    # SONiC's queues 3 and 4 are lossless once its own templates are loaded.
    yield "config qos reload"
    yield "vtysh <<'FRR'"
    yield "configure terminal"
    yield from _routing(switch, sessions)
    yield "end"
    yield "write memory"
    yield "FRR"
    yield "config save -y"


def _routing(switch: RoutedSwitch, sessions: list[str]) -> Iterator[str]:
    """Yield FRR's lines: sessions with whatever neighbour a port has, and paths through all of them at once."""
    router = switch.router
    yield f"router bgp {router.asn}"
    yield f" bgp router-id {router.loopback}"
    yield " no bgp ebgp-requires-policy"
    yield " bgp bestpath as-path multipath-relax"
    for name in sessions:
        yield f" neighbor {name} interface remote-as external"
    yield " address-family ipv4 unicast"
    yield f"  network {router.loopback}/32"
    if switch.links:
        yield "  redistribute connected"
    for name in sessions:
        yield f"  neighbor {name} activate"
    yield f"  maximum-paths {MAX_PATHS}"
    yield " exit-address-family"
