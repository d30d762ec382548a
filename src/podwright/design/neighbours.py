"""An Ethernet fabric as its switches see it: what LLDP reported to each of them of the far ends of its cables.

Two forms are read, one file for each switch: JSON of `lldpctl -f json` or `json0`, and the table of NVUE's
`nv show interface lldp`, which has speeds too.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from podwright.design.exports.ibnet import Port
from podwright.design.exports.switch_ports import port_number
from podwright.spec import SwitchModel
from podwright.spec.problems import refuse

COMMANDS = "`lldpctl -f json` or `nv show interface lldp`"
# Interface, speed, type, remote host, remote port; a port without a neighbour has no more than three.
_ROW = re.compile(r"^(?P<port>\S+)\s+(?P<speed>\d+(?:\.\d+)?[MGT])\s+\S+\s+(?P<host>\S+)\s+(?P<far>\S+)\s*$")
_HEAD = re.compile(r"^Interface\s+Speed\s+Type\s+Remote Host\s+Remote Port")
# Hosts on a rail that show one name before that name counts as the rail's.
MIN_VOTES = 2


class Neighbour(NamedTuple):
    """The far end of one port: `speed` is such as 400G, and empty where the file does not say."""

    port: str
    device: str
    far_port: str
    speed: str = ""


def read_neighbours(text: str, file: str) -> list[Neighbour]:
    """Read what one switch printed."""
    if text.lstrip().startswith(("{", "[")):
        return list(_from_json(text, file))
    lines = text.splitlines()
    if not any(_HEAD.match(line) for line in lines):
        raise refuse("is neither form of LLDP neighbours", hint=f"write it with {COMMANDS}", file=file)
    rows = (_ROW.match(line) for line in lines)
    return [Neighbour(row["port"], row["host"], row["far"], row["speed"]) for row in rows if row]


def _from_json(text: str, file: str) -> Iterator[Neighbour]:
    try:
        document = json.loads(text)
    except ValueError as error:
        where = f"{file}:{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else file
        raise refuse("is not JSON", hint=f"write it with {COMMANDS}", file=where) from None
    for lldp in _each(document):
        for interface in _each(lldp.get("lldp")):
            for entry in _each(interface.get("interface")):
                yield from _entries(entry)


def _entries(entry: Mapping[str, Any]) -> Iterator[Neighbour]:
    """Yield the neighbours of what stands under `interface`: json0 has names as values, json as keys."""
    if isinstance(entry.get("name"), str):
        yield from _entry(entry["name"], entry)
        return
    for port, value in entry.items():
        for neighbour in _each(value):
            yield from _entry(port, neighbour)


def _entry(port: str, entry: Mapping[str, Any]) -> Iterator[Neighbour]:
    for chassis in _each(entry.get("chassis")):
        for far in _each(entry.get("port")):
            device = _value(chassis.get("name")) or _only_key(chassis)
            identity = next(iter(_each(far.get("id"))), {})
            name = _value(identity.get("value"))
            # Linux hosts report their ports by MAC address, and their names as a description.
            if identity.get("type") == "mac":
                name = _value(far.get("descr")) or name
            if device and name:
                yield Neighbour(port, device, name)


def _each(value: Any) -> Iterable[Mapping[str, Any]]:
    """Return objects, whether there is a list of them or one alone, as lldpctl writes a list of one."""
    if isinstance(value, dict):
        return [value]
    if isinstance(value, list):
        return [element for element in value if isinstance(element, dict)]
    return []


def _value(value: Any) -> str:
    """Return a word, which json0 writes as `[{"value": word}]`."""
    if isinstance(value, str):
        return value
    for wrapped in _each(value):
        if isinstance(wrapped.get("value"), str):
            return str(wrapped["value"])
    return ""


def _only_key(chassis: Mapping[str, Any]) -> str:
    """Return the name of a chassis in lldpctl's plain JSON: its key. One without a name has its parts there."""
    if len(chassis) == 1 and "id" not in chassis:
        return str(next(iter(chassis)))
    return ""


def ports_of(
    seen: Mapping[str, list[Neighbour]], designed: Mapping[Port, Port], switches: Mapping[str, SwitchModel]
) -> tuple[dict[Port, Port], dict[Port, str]]:
    """Return what each port of a switch is joined to, and how fast it runs, in the terms of the design.

    Ports that the fabric does not have, such as those of the management network, are left out.
    """
    links: dict[Port, Port] = {}
    speeds: dict[Port, str] = {}
    hosts: list[tuple[Port, Neighbour]] = []
    devices = {port.device.partition(" ")[0] for port in designed}
    for switch, neighbours in seen.items():
        for neighbour in neighbours:
            number = port_number(switches[switch], neighbour.port)
            if number is None:
                continue
            port, named = Port(switch, number), _named(neighbour, devices)
            if named.speed:
                speeds[port] = named.speed
            if named.device in switches:
                links[port] = _switch_port(named, designed.get(port), switches[named.device])
            else:
                hosts.append((port, named))
    return links | _adapters(hosts, designed), speeds


def _named(neighbour: Neighbour, devices: Collection[str]) -> Neighbour:
    """Call a neighbour by the name that the design knows, which is mostly the first part of a full one."""
    short = neighbour.device.partition(".")[0]
    if neighbour.device not in devices and short in devices:
        return neighbour._replace(device=short)
    return neighbour


def _switch_port(neighbour: Neighbour, designed_port: Port | None, model: SwitchModel) -> Port:
    """Return the port of a switch; one whose name is in no form that we know is believed to be the right one."""
    number = port_number(model, neighbour.far_port)
    if number is not None:
        return Port(neighbour.device, number)
    if designed_port is not None and designed_port.device == neighbour.device:
        return designed_port
    return Port(f"{neighbour.device} {neighbour.far_port}", 1)


def _adapters(seen: list[tuple[Port, Neighbour]], designed: Mapping[Port, Port]) -> dict[Port, Port]:
    """Return the adapters of hosts behind ports of switches.

    A design knows adapters (`mlx5_0`), LLDP the interfaces of Linux. What most hosts call the port of a rail is that
    rail's name; a host that shows the name of another rail there has two cables swapped. A name that tells nothing is
    taken for the adapter that belongs there.
    """
    rails = _rail_names(seen, designed)
    links: dict[Port, Port] = {}
    for port, neighbour in seen:
        host, adapter = _host(designed.get(port))
        named = rails.get(neighbour.far_port, neighbour.far_port)
        end = Port(f"{neighbour.device} {named}", 1)
        if end not in designed and host == neighbour.device:
            end = Port(f"{host} {adapter}", 1)
        links[port] = end
    return links


def _rail_names(seen: list[tuple[Port, Neighbour]], designed: Mapping[Port, Port]) -> dict[str, str]:
    """Return the adapter that each name of an interface stands for; a name of several adapters stands for none."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for port, neighbour in seen:
        host, adapter = _host(designed.get(port))
        if host == neighbour.device:
            votes[adapter][neighbour.far_port] += 1
    elected: list[tuple[str, str]] = []
    for adapter, counted in votes.items():
        for name, count in counted.most_common(1):
            if count >= MIN_VOTES and 2 * count > counted.total():
                elected.append((name, adapter))
    shared = Counter(name for name, _ in elected)
    return {name: adapter for name, adapter in elected if shared[name] == 1}


def _host(port: Port | None) -> tuple[str, str]:
    """Return a host and its adapter; a port that is not designed has neither."""
    if port is None:
        return "", ""
    host, _, adapter = port.device.partition(" ")
    return host, adapter
