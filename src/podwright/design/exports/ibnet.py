"""A fabric as `ibnetdiscover` would print it: for ibsim, OpenSM and whatever else reads such a file.

GUIDs are numbers of ours, in the order of the file, since nobody knows those of hardware that is not bought yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from podwright.design.plan import Blueprint
from podwright.design.speeds import link_speed
from podwright.spec import SwitchModel

FIRST_GUID = 0x0002_C903_0000_0000
# An adapter's port has the GUID after the adapter's own.
GUID_STEP = 16
# Gb/s of a port of four lanes -> what ibnetdiscover prints.
WIDTHS = {40: "4xQDR", 56: "4xFDR", 100: "4xEDR", 200: "4xHDR", 400: "4xNDR", 800: "4xXDR"}


class Port(NamedTuple):
    """A port as the file sees it: an adapter's port is always its first, the adapter's name is the device."""

    device: str
    number: int


class Fabric(NamedTuple):
    """Devices with their number of ports, links in both directions, and what the file calls the speed of each end.

    `panels` has what the panel calls a port where that is another name.
    """

    switches: dict[str, int]
    adapters: list[str]
    links: dict[Port, Port]
    rates: dict[Port, str]
    panels: dict[Port, str]


def fabric_of(design: Blueprint, name: str) -> Fabric:
    """Return a fabric in the file's terms: each adapter of a host is a device of its own."""
    model = design.requirements.switch_of(name)
    assert model is not None, "a fabric is only wired where its switch is known"
    switches = {switch.name: model.ports for switch in design.wired[name].switches}
    adapters: dict[str, None] = {}
    links: dict[Port, Port] = {}
    rates: dict[Port, str] = {}
    panels: dict[Port, str] = {}
    speeds = {host: link_speed(design.pod, node, name) for host, node in design.requirements.models.items()}
    for cable in design.wired[name].cables:
        near, far = design.sockets.ends(cable)
        a, b = Port(cable.a, cable.a_port), Port(cable.b, cable.b_port)
        if cable.a not in switches:
            a = Port(f"{cable.a} {near.name}", 1)
            adapters[a.device] = None
        links[a], links[b] = b, a
        rates[a] = rates[b] = _rate(model, speeds.get(cable.a))
        panels |= {port: socket.panel for port, socket in ((a, near), (b, far)) if socket.panel != socket.name}
    return Fabric(switches, list(adapters), links, rates, panels)


def ibnetdiscover(design: Blueprint, name: str) -> str:
    """Return the file of one fabric."""
    fabric = fabric_of(design, name)
    guids = {
        device: FIRST_GUID + GUID_STEP * number for number, device in enumerate([*fabric.switches, *fabric.adapters], 1)
    }
    by_device: dict[str, list[int]] = {}
    for port in fabric.links:
        by_device.setdefault(port.device, []).append(port.number)
    lines = [f"# {design.pod.name}: {name} fabric, as designed", ""]
    for device in guids:
        lines += _device(device, fabric, guids, sorted(by_device.get(device, [])))
    return "\n".join(lines) + "\n"


def _device(device: str, fabric: Fabric, guids: dict[str, int], ports: list[int]) -> Iterator[str]:
    guid, name = f"{guids[device]:016x}", _id(device, fabric, guids)
    if device in fabric.switches:
        yield f"switchguid=0x{guid}"
        yield f'Switch\t{fabric.switches[device]} "{name}"\t\t# "{device}" base port 0 lid 0 lmc 0'
    else:
        yield f"caguid=0x{guid}"
        yield f'Ca\t1 "{name}"\t\t# "{device}"'
    for number in ports:
        peer = fabric.links[Port(device, number)]
        end = f'"{_id(peer.device, fabric, guids)}"[{peer.number}]'
        yield f'[{number}]\t{end}\t\t# "{peer.device}" lid 0 {fabric.rates[Port(device, number)]}'
    yield ""


def _rate(model: SwitchModel, node_gbps: float | None) -> str:
    """Return what a link runs at: the slower of its two ports."""
    speed = model.speed_gbps or 200
    return WIDTHS.get(int(min(speed, node_gbps or speed)), "4xHDR")


def _id(device: str, fabric: Fabric, guids: dict[str, int]) -> str:
    letter = "S" if device in fabric.switches else "H"
    return f"{letter}-{guids[device]:016x}"
