"""Compares a fabric as `ibnetdiscover` sees it with the design, and names every cable that is not where it belongs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from podwright.design.exports.ibnet import Port, fabric_of
from podwright.design.plan import Design
from podwright.spec.problems import refuse

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
    found = read_links(text)
    seen = {port.device for port in found}
    fabrics = tuple(name for name, wired in design.wired.items() if any(one.name in seen for one in wired.switches))
    if not fabrics:
        raise refuse(
            "names no switch of this design" if seen else "holds no links",
            hint="write it with `ibnetdiscover`; switches are known by their names"
            + (f", and this file has {sorted(seen)[0]}" if seen else ""),
            file=file,
        )
    links: dict[Port, Port] = {}
    for name in fabrics:
        links |= fabric_of(design, name).links
    return Checked(fabrics, len(links) // 2, list(_compare(links, found)))


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
    return match["name"].strip() if match else text.strip()


def _compare(designed: Mapping[Port, Port], found: Mapping[Port, Port]) -> Iterator[Deviation]:
    """Yield what is wrong with the cables that are there, each once, then those that are not."""
    said: set[frozenset[Port]] = set()
    for port, peer in sorted(found.items()):
        cable = frozenset((port, peer))
        if designed.get(port) == peer or cable in said:
            continue
        said.add(cable)
        yield _wrong(port, peer, designed)
    there = {*found, *found.values()}
    for port, peer in sorted(designed.items()):
        if port < peer and port not in there and peer not in there:
            yield Deviation("missing", f"{_words(port)} is not joined to {_words(peer)}")


def _wrong(port: Port, peer: Port, designed: Mapping[Port, Port]) -> Deviation:
    wanted = [f"{_words(end)} belongs to {_words(designed[end])}" for end in (port, peer) if end in designed]
    if wanted:
        return Deviation("wrong", f"{_words(port)} is joined to {_words(peer)}; {', '.join(wanted)}")
    return Deviation("unknown", f"{_words(port)} is joined to {_words(peer)}; the design has no such cable")


def _words(port: Port) -> str:
    return port.device if " " in port.device else f"{port.device} port {port.number}"
