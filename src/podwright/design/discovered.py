"""A fabric as `ibnetdiscover` saw it: devices, links with their width and speed, and names for switches without one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from podwright.design.exports.ibnet import Port

_DEVICE = re.compile(r'^(?P<kind>Switch|Ca|Hca|Rt)\s+\d+\s+"(?P<id>[^"]+)"(?:.*?#\s*"(?P<name>[^"]*)")?', re.I)
_LINK = re.compile(r'^\[(?P<port>\d+)\](?:\[[^\]]*\])?(?:\([^)]*\))?\s+"(?P<id>[^"]+)"\[(?P<peer>\d+)\](?P<rest>.*)')
_RATE = re.compile(r"\b\d+x(?:SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b")
# A managed switch says `MF0;leaf-u01-r1:MQM8700/U1`, of which the middle is its name.
_MANAGED = re.compile(r"^(?:MF0;)?(?P<name>[^:;/]+)(?::[^:]*)?$")
# One cable alone names nobody: it may be the one that is in the wrong place.
MIN_VOTES = 2


class SeenLink(NamedTuple):
    """One end of a link by the ids of the file; `rate` is such as 4xHDR, and empty where the file does not say."""

    device: str
    port: int
    peer: str
    peer_port: int
    rate: str


@dataclass(slots=True)
class SeenFabric:
    """What a file holds: the name of each id, which of them are switches, and all links."""

    names: dict[str, str] = field(default_factory=dict)
    switches: list[str] = field(default_factory=list)
    links: list[SeenLink] = field(default_factory=list)

    def ports(self) -> dict[Port, Port]:
        """Return what each port is joined to, by the names of the devices."""
        return {
            Port(self.names[link.device], link.port): Port(self.names.get(link.peer, link.peer), link.peer_port)
            for link in self.links
        }

    def rates(self) -> dict[Port, str]:
        """Return the width and speed of each port that the file gives one for."""
        return {Port(self.names[link.device], link.port): link.rate for link in self.links if link.rate}


def read_discovered(text: str) -> SeenFabric:
    """Read an ibnetdiscover file."""
    seen = SeenFabric()
    device = ""
    for line in text.splitlines():
        if head := _DEVICE.match(line):
            device = head["id"]
            seen.names[device] = _name(head["name"] or device)
            if head["kind"].lower() == "switch":
                seen.switches.append(device)
        elif (link := _LINK.match(line)) and device:
            rates = _RATE.findall(link["rest"])
            rate = rates[-1] if rates else ""
            seen.links.append(SeenLink(device, int(link["port"]), link["id"], int(link["peer"]), rate))
    return seen


def infer_names(seen: SeenFabric, designed: Mapping[Port, Port], switches: Collection[str]) -> dict[str, str]:
    """Name the switches whose names the design does not know by what they are joined to, and return those names by id.

    Hosts fix their leaves, leaves their spines, spines their cores; most of a switch's cables must agree.
    """
    unnamed = [device for device in seen.switches if seen.names[device] not in switches]
    named = {device: name for device, name in seen.names.items() if device not in set(unnamed)}
    inferred: dict[str, str] = {}
    while fresh := dict(_elected(seen, designed, {**named, **inferred}, switches)):
        inferred |= fresh
    counted = Counter(seen.names.values())
    for device in unnamed:
        if device in inferred:
            seen.names[device] = inferred[device]
        elif counted[seen.names[device]] > 1:
            # A name that several have tells nobody which one is meant.
            seen.names[device] = device
    return inferred


def _elected(
    seen: SeenFabric, designed: Mapping[Port, Port], named: Mapping[str, str], switches: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each unnamed switch with the name that more than half of its cables to known devices stand for."""
    votes: dict[str, Counter[str]] = {device: Counter() for device in seen.switches if device not in named}
    for link in seen.links:
        if link.device in votes and link.peer in named:
            partner = designed.get(Port(named[link.peer], link.peer_port))
            votes[link.device][partner.device if partner else ""] += 1
    taken = set(named.values())
    for device, counted in votes.items():
        for name, count in counted.most_common(1):
            if name in switches and name not in taken and count >= MIN_VOTES and 2 * count > counted.total():
                taken.add(name)
                yield device, name


def name_map(names: Mapping[str, str]) -> str:
    """Return the node-name-map that OpenSM and the diagnostics of InfiniBand read."""
    return "".join(f'0x{device.partition("-")[2]} "{name}"\n' for device, name in sorted(names.items()))


def _name(text: str) -> str:
    match = _MANAGED.match(text.strip())
    if match:
        return match["name"].strip()
    return text.strip()
