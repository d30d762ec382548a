"""Compares a fabric as it was built with the design: cables that are not where they belong, devices that are not
there, links that do not run at their width and speed.

InfiniBand is compared with what `ibnetdiscover` printed, Ethernet with what LLDP told each switch.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath

from podwright.design.discovered import infer_names, read_discovered
from podwright.design.exports.ibnet import Port, fabric_of
from podwright.design.exports.switch_ports import cumulus_port
from podwright.design.neighbours import COMMANDS, Neighbour, ports_of, read_neighbours
from podwright.design.plan import Design
from podwright.design.speeds import link_speed
from podwright.design.wiring import Wired
from podwright.spec.problems import Refusal, refuse


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


def check_fabric(design: Design, text: str, file: str) -> Checked:
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
    there = tuple(name for name, wired in design.wired.items() if _names_any(devices, wired))
    if not there:
        raise _no_fabric(devices, file, design.underlay is not None)
    links: dict[Port, Port] = {}
    rates: dict[Port, str] = {}
    panels: dict[Port, str] = {}
    for name in there:
        links |= fabrics[name].links
        rates |= fabrics[name].rates
        panels |= fabrics[name].panels
    say = _PortWords(panels)
    findings = [*_compare(links, seen.ports(), say), *_slow(links, rates, seen.rates(), say)]
    return Checked(there, len(links) // 2, findings, inferred)


def check_neighbours(design: Design, texts: Mapping[str, str], place: str) -> Checked:
    """Compare what LLDP told switches with the Ethernet fabric: `texts` by their files, each named after its switch.

    Only cables of switches that printed something are compared.
    """
    model = design.requirements.compute_switch
    if model is None or design.underlay is None:
        raise refuse(
            "is about an Ethernet fabric, and this pod has none", hint="give a file of `ibnetdiscover`", file=place
        )
    fabric = fabric_of(design, "compute")
    models = dict.fromkeys(fabric.switches, model)
    seen: dict[str, list[Neighbour]] = {}
    for file, text in texts.items():
        if (name := PurePath(file).stem) in models:
            seen[name] = read_neighbours(text, file)
    if not seen:
        raise _no_neighbours(texts, min(models), place)
    links = {port: peer for port, peer in fabric.links.items() if {port.device, peer.device} & set(seen)}
    names = {port: cumulus_port(model, port.number) for port in links if port.device in models}
    actual, speeds = ports_of(seen, fabric.links, models)
    say = _PortWords(names)
    findings = [*_compare(links, actual, say), *_slow(links, _speeds(design, links), speeds, say)]
    return Checked(("compute",), len(links) // 2, findings)


def _no_neighbours(texts: Mapping[str, str], example: str, place: str) -> Refusal:
    hint = f"keep what {COMMANDS} prints on a switch in a file of its name, such as {example}.json"
    if texts:
        hint += f"; here is {PurePath(min(texts)).name}"
    return refuse("has no file of a switch of this design", hint=hint, file=place)


def _speeds(design: Design, links: Mapping[Port, Port]) -> dict[Port, str]:
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


class _PortWords:
    """Says which port is meant: as programs count it, and as its panel does where that is another name."""

    def __init__(self, panels: Mapping[Port, str]) -> None:
        self._panels = panels

    def port(self, port: Port) -> str:
        """Return a port in words; an adapter has one, and is called by its own name."""
        name = port.device if " " in port.device else f"{port.device} port {port.number}"
        panel = self._panels.get(port)
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


def _compare(designed: Mapping[Port, Port], actual: Mapping[Port, Port], say: _PortWords) -> Iterator[Deviation]:
    """Yield devices that are not there, then what is wrong with the cables that are, each once, then missing cables."""
    there = {*actual, *actual.values()}
    absent = [(port, peer) for port, peer in sorted(designed.items()) if port not in there and peer not in there]
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
            yield Deviation("missing", f"{say.port(port)} is not joined to {say.port(peer)}")


def _gone(designed: Mapping[Port, Port], absent: list[tuple[Port, Port]]) -> dict[str, int]:
    """Return the devices none of whose several cables are there, with their number."""
    wanted = Counter(_owner(port) for port in designed)
    missing = Counter(_owner(port) for port, _ in absent)
    return {device: count for device, count in missing.items() if count == wanted[device] > 1}


def _slow(
    designed: Mapping[Port, Port], rates: Mapping[Port, str], actual: Mapping[Port, str], say: _PortWords
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
    for (rate, wanted), ports in wrong.items():
        if len(ports) == compared > 1:
            yield Deviation("speed", f"all {compared:,} links run at {rate}; they are designed for {wanted}")
            continue
        for port in ports:
            ends = f"{say.port(port)} to {say.port(designed[port])}"
            yield Deviation("speed", f"{ends} runs at {rate}; it is designed for {wanted}")


def _wrong(port: Port, peer: Port, designed: Mapping[Port, Port], say: _PortWords) -> Deviation:
    wanted = [f"{say.port(end)} belongs to {say.port(designed[end])}" for end in (port, peer) if end in designed]
    if wanted:
        return Deviation("wrong", f"{say.port(port)} is joined to {say.port(peer)}; {', '.join(wanted)}")
    return Deviation("unknown", f"{say.port(port)} is joined to {say.port(peer)}; the design has no such cable")


def _owner(port: Port) -> str:
    """Return the device that a port belongs to: an adapter is named with its host."""
    return port.device.partition(" ")[0]
