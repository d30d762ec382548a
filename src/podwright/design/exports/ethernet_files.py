"""What an Ethernet fabric needs beside its cables: commands for each switch, and addresses for each host port."""

from __future__ import annotations

from podwright.design.csv_text import write_csv
from podwright.design.ethernet import Underlay
from podwright.design.exports.nvue import nvue_commands
from podwright.design.exports.routed import routed_switches
from podwright.design.exports.sonic import sonic_commands
from podwright.design.exports.switch_ports import cumulus_port
from podwright.design.plan import Blueprint
from podwright.design.sockets import Sockets
from podwright.spec import SwitchModel

# A folder -> who writes the commands of one switch into it.
SYSTEMS = {"nvue": nvue_commands, "sonic": sonic_commands}


def ethernet_files(design: Blueprint) -> dict[str, str]:
    """Return the files of an Ethernet compute fabric by path; none for another one."""
    switch, numbers = design.requirements.compute_switch, design.underlay
    if switch is None or numbers is None:
        return {}
    files = {"bgp.csv": _routers(numbers), "compute-addresses.csv": _addresses(numbers, design.sockets, switch)}
    for routed in routed_switches(design):
        for folder, commands in SYSTEMS.items():
            files[f"{folder}/{routed.name}.sh"] = "\n".join(commands(routed)) + "\n"
    return files


def _routers(numbers: Underlay) -> str:
    rows = []
    for router in numbers.routers:
        sessions = len(numbers.sessions.get(router.switch.name, ()))
        rows.append((router.switch.name, router.switch.tier, router.asn, router.loopback, router.block or "", sessions))
    return write_csv(("switch", "tier", "asn", "loopback", "host_network", "sessions"), rows)


def _addresses(numbers: Underlay, sockets: Sockets, switch: SwitchModel) -> str:
    rows = []
    for link in numbers.links:
        host_port = sockets.ends(link.cable)[0].name
        leaf_port = cumulus_port(switch, link.cable.b_port)
        addresses = (f"{link.host_address}/31", link.leaf_address)
        rows.append((link.cable.a, host_port, *addresses, link.cable.b, leaf_port))
    return write_csv(("host", "port", "address", "gateway", "leaf", "leaf_port"), rows)
