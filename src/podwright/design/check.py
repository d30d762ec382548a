"""Compares a fabric as it was built with the design: cables that are not where they belong, devices that are not
there, links that do not run at their width and speed.

InfiniBand is compared with what `ibnetdiscover` printed, Ethernet with what LLDP reported to each switch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any

from podwright.design.discovered import infer_names, name_map, read_discovered
from podwright.design.exports.ibnet import Port, fabric_of
from podwright.design.exports.switch_ports import cumulus_port
from podwright.design.neighbours import COMMANDS, Neighbour, ports_of, read_neighbours
from podwright.design.plan import Blueprint
from podwright.design.speeds import link_speed
from podwright.design.wiring import Wired
from podwright.spec.problems import Refusal, refuse

# Says which port is meant.
Say = Callable[[Port], str]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One thing that is not as designed."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What was compared and what was found; `inferred` are the names that switches were given, by their ids."""

    fabrics: tuple[str, ...]
    cables: int
    findings: list[Deviation]
    inferred: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `design --check`."""
        return {"fabrics": self.fabrics, "cables": self.cables, "findings": [asdict(one) for one in self.findings]}

    def files(self) -> dict[str, str]:
        """Return the names of switches that had none, as OpenSM reads them."""
        return {"node-name-map": name_map(self.inferred)}


def check_fabric(design: Blueprint, text: str, file: str) -> Checked:
    """Compare a file with those fabrics of the design whose switches it names, or whose hosts name its switches."""
    seen = read_discovered(text)
    fabrics = {name: fabric_of(design, name) for name in design.wired}
    everything: dict[Port, Port] = {}
    switches: set[str] = set()
    for fabric in fabrics.values():
        everything |= fabric.links
        switches |= set(fabric.switches)
    inferred = infer_names(seen, everything, switches)
    devices = {port.device for port in seen.ports()}
    fabric_names = tuple(name for name, wired in design.wired.items() if _names_any(devices, wired))
    if not fabric_names:
        raise _no_fabric(devices, file, design.underlay is not None)
    links: dict[Port, Port] = {}
    rates: dict[Port, str] = {}
    panels: dict[Port, str] = {}
    for name in fabric_names:
        links |= fabrics[name].links
        rates |= fabrics[name].rates
        panels |= fabrics[name].panels
    say = partial(_words, panels=panels)
    findings = [*_compare(links, seen.ports(), say), *_slow(links, rates, seen.rates(), say)]
    return Checked(fabric_names, len(links) // 2, findings, inferred)


def check_neighbours(design: Blueprint, texts: Mapping[str, str], source: str) -> Checked:
    """Compare what LLDP reported with the Ethernet fabric: `texts` by their files, each named after its switch.

    Only cables of switches that printed something are compared.
    """
    model = design.requirements.compute_switch
    if model is None or design.underlay is None:
        raise refuse(
            "is about an Ethernet fabric, and this pod has none", hint="give a file of `ibnetdiscover`", file=source
        )
    fabric = fabric_of(design, "compute")
    models = dict.fromkeys(fabric.switches, model)
    seen: dict[str, list[Neighbour]] = {}
    for file, text in texts.items():
        if (name := PurePath(file).stem) in models:
            seen[name] = read_neighbours(text, file)
    if not seen:
        raise _no_neighbours(texts, min(models), source)
    links = {port: peer for port, peer in fabric.links.items() if {port.device, peer.device} & set(seen)}
    names = {port: cumulus_port(model, port.number) for port in links if port.device in models}
    actual, speeds = ports_of(seen, fabric.links, models)
    say = partial(_words, panels=names)
    findings = [*_compare(links, actual, say), *_slow(links, _speeds(design, links), speeds, say)]
    return Checked(("compute",), len(links) // 2, findings)


def _no_neighbours(texts: Mapping[str, str], example: str, source: str) -> Refusal:
    hint = f"keep what {COMMANDS} prints on a switch in a file of its name, such as {example}.json"
    if texts:
        hint += f"; here is {PurePath(min(texts)).name}"
    return refuse("has no file of a switch of this design", hint=hint, file=source)


def _speeds(design: Blueprint, links: Mapping[Port, Port]) -> dict[Port, str]:
    """Return what each link should run at, as NVUE writes it: the slower of its two ports."""
    model = design.requirements.compute_switch
    assert model is not None, "a fabric that is compared has a switch"
    switch_gbps = model.speed_gbps or 0
    hosts = {
        host: link_speed(design.pod, node, "compute") or switch_gbps
        for host, node in design.requirements.models.items()
    }
    speeds: dict[Port, str] = {}
    for port, peer in links.items():
        gbps = min(hosts.get(_owner(end), switch_gbps) for end in (port, peer))
        speeds[port] = f"{min(gbps, switch_gbps):g}G"
    return speeds


def _words(port: Port, panels: Mapping[Port, str]) -> str:
    """Return a port as programs count it, and as its panel does; an adapter has one, and is called by its own name."""
    name = port.device if " " in port.device else f"{port.device} port {port.number}"
    panel = panels.get(port)
    return f"{name} ({panel})" if panel else name


def _names_any(devices: set[str], wired: Wired) -> bool:
    return any(switch.name in devices for switch in wired.switches)


def _no_fabric(devices: set[str], file: str, ethernet: bool) -> Refusal:
    hint = "write it with `ibnetdiscover`; switches are known by their names or by their hosts"
    if ethernet:
        hint = f"of the Ethernet fabric give a folder of what {COMMANDS} printed, each file named after its switch"
    if not devices:
        return refuse("holds no links", hint=hint, file=file)
    hint += f", and this file has {min(devices)}"
    return refuse("names no switch of this design", hint=hint, file=file)


def _compare(designed: Mapping[Port, Port], actual: Mapping[Port, Port], say: Say) -> Iterator[Deviation]:
    """Yield devices that are not there, then what is wrong with the cables that are, each once, then missing cables."""
    found = {*actual, *actual.values()}
    absent = [(port, peer) for port, peer in sorted(designed.items()) if port not in found and peer not in found]
    gone = _gone(designed, absent)
    for device, cables in gone.items():
        yield Deviation("gone", f"{device} is not there ({cables} cables)")
    said: set[frozenset[Port]] = set()
    for port, peer in sorted(actual.items()):
        cable = frozenset((port, peer))
        if designed.get(port) == peer or cable in said:
            continue
        said.add(cable)
        yield _wrong(port, peer, designed, say)
    for port, peer in absent:
        if port < peer and not {_owner(port), _owner(peer)} & set(gone):
            yield Deviation("missing", f"{say(port)} is not joined to {say(peer)}")


def _gone(designed: Mapping[Port, Port], absent: list[tuple[Port, Port]]) -> dict[str, int]:
    """Return the devices none of whose several cables are there, with their number."""
    cables = Counter(_owner(port) for port in designed)
    missing = Counter(_owner(port) for port, _ in absent)
    return {device: count for device, count in missing.items() if count == cables[device] > 1}


def _slow(
    designed: Mapping[Port, Port], rates: Mapping[Port, str], actual: Mapping[Port, str], say: Say
) -> Iterator[Deviation]:
    """Yield links of another width or speed, each once; where all are alike it is one thing to mend."""
    wrong: dict[tuple[str, str], list[Port]] = defaultdict(list)
    compared = 0
    for port in sorted(actual):
        peer = designed.get(port)
        if peer is None or (peer < port and peer in actual):
            continue
        compared += 1
        if actual[port] != rates[port]:
            wrong[(actual[port], rates[port])].append(port)
    for (rate, designed_rate), ports in wrong.items():
        if len(ports) == compared > 1:
            yield Deviation("speed", f"all {compared:,} links run at {rate}; they are designed for {designed_rate}")
            continue
        for port in ports:
            ends = f"{say(port)} to {say(designed[port])}"
            yield Deviation("speed", f"{ends} runs at {rate}; it is designed for {designed_rate}")


def _wrong(port: Port, peer: Port, designed: Mapping[Port, Port], say: Say) -> Deviation:
    homes = [f"{say(end)} belongs to {say(designed[end])}" for end in (port, peer) if end in designed]
    if homes:
        return Deviation("wrong", f"{say(port)} is joined to {say(peer)}; {', '.join(homes)}")
    return Deviation("unknown", f"{say(port)} is joined to {say(peer)}; the design has no such cable")


def _owner(port: Port) -> str:
    """Return the device that a port belongs to: an adapter is named with its host."""
    return port.device.partition(" ")[0]
