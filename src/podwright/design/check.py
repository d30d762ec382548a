"""Compares a fabric as `ibnetdiscover` sees it with the design, and names every cable that is not where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podwright.design.exports.ibnet import Port, fabric_of
from podwright.design.plan import Design
from podwright.design.wiring import Wired
from podwright.spec.problems import Refusal, refuse

_DEVICE = re.compile(r'^(?:Switch|Ca|Hca|Rt)\s+(?P<ports>\d+)\s+"(?P<id>[^"]+)"(?:.*?#\s*"(?P<name>[^"]*)")?', re.I)
_LINK = re.compile(r'^\[(?P<port>\d+)\](?:\[[^\]]*\])?(?:\([^)]*\))?\s+"(?P<id>[^"]+)"\[(?P<peer>\d+)\]')
# A managed switch says `MF0;leaf-u01-r1:MQM8700/U1`, of which the middle is its name.
_MANAGED = re.compile(r"^(?:MF0;)?(?P<name>[^:;/]+)(?::[^:]*)?$")


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing that is not as designed."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What was compared and what was found."""

    fabrics: tuple[str, ...]
    cables: int
    findings: list[Deviation]


def check_fabric(design: Design, text: str, file: str) -> Checked:
    """Compare a file with those fabrics of the design whose switches it names."""
    actual = read_links(text)
    devices = {port.device for port in actual}
    fabrics = tuple(name for name, wired in design.wired.items() if _names_any(devices, wired))
    if not fabrics:
        raise _no_fabric(devices, file)
    links: dict[Port, Port] = {}
    for name in fabrics:
        links |= fabric_of(design, name).links
    return Checked(fabrics, len(links) // 2, list(_compare(links, actual)))


def _names_any(devices: set[str], wired: Wired) -> bool:
    return any(switch.name in devices for switch in wired.switches)


def _no_fabric(devices: set[str], file: str) -> Refusal:
    hint = "write it with `ibnetdiscover`; switches are known by their names"
    if not devices:
        return refuse("holds no links", hint=hint, file=file)
    hint += f", and this file has {min(devices)}"
    return refuse("names no switch of this design", hint=hint, file=file)


def read_links(text: str) -> dict[Port, Port]:
    """Read the links of an ibnetdiscover file, by the names that devices go by."""
    names: dict[str, str] = {}
    raw: list[tuple[str, int, str, int]] = []
    device = ""
    for line in text.splitlines():
        if head := _DEVICE.match(line):
            device = head["id"]
            names[device] = _name(head["name"] or device)
        elif (link := _LINK.match(line)) and device:
            raw.append((device, int(link["port"]), link["id"], int(link["peer"])))
    return {Port(names[device], port): Port(names.get(peer, peer), peer_port) for device, port, peer, peer_port in raw}


def _name(text: str) -> str:
    match = _MANAGED.match(text.strip())
    if match:
        return match["name"].strip()
    return text.strip()


def _compare(designed: Mapping[Port, Port], actual: Mapping[Port, Port]) -> Iterator[Deviation]:
    """Yield what is wrong with the cables that are there, each once, then those that are not."""
    said: set[frozenset[Port]] = set()
    for port, peer in sorted(actual.items()):
        cable = frozenset((port, peer))
        if designed.get(port) == peer or cable in said:
            continue
        said.add(cable)
        yield _wrong(port, peer, designed)
    there = {*actual, *actual.values()}
    for port, peer in sorted(designed.items()):
        if port < peer and port not in there and peer not in there:
            yield Deviation("missing", f"{_port_text(port)} is not joined to {_port_text(peer)}")


def _wrong(port: Port, peer: Port, designed: Mapping[Port, Port]) -> Deviation:
    wanted = [f"{_port_text(end)} belongs to {_port_text(designed[end])}" for end in (port, peer) if end in designed]
    if wanted:
        return Deviation("wrong", f"{_port_text(port)} is joined to {_port_text(peer)}; {', '.join(wanted)}")
    return Deviation("unknown", f"{_port_text(port)} is joined to {_port_text(peer)}; the design has no such cable")


def _port_text(port: Port) -> str:
    # An adapter is named with its host, and has one port.
    if " " in port.device:
        return port.device
    return f"{port.device} port {port.number}"
