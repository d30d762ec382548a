"""What has ports on the management network beside its switches: how many, which are fast, and what comes later."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from podwright.design.domain_racks import parts_later, parts_of_unit
from podwright.design.requirements import Requirements
from podwright.design.sizing import units_of
from podwright.design.speeds import FASTEST_TWISTED_GBPS
from podwright.design.wiring import Switch
from podwright.spec import NodeModel


@dataclass(frozen=True, slots=True)
class ManagementPorts:
    """The management ports of one device: twisted pair, with the BMC's last, and fast ones."""

    device: str
    slow: int
    fast: int
    has_bmc: bool


def host_ports(host: str, model: NodeModel) -> ManagementPorts:
    """Return the ports of a host."""
    speeds = [nic.speed_gbps for nic in model.nics if nic.kind == "management"]
    slow = sum(speed <= FASTEST_TWISTED_GBPS for speed in speeds)
    return ManagementPorts(host, slow + 1, len(speeds) - slow, has_bmc=True)


def other_ports(requirements: Requirements, switches: Sequence[Switch]) -> Iterator[ManagementPorts]:
    """Yield what is no node of the fabrics; things whose number is fixed come first."""
    own = set(requirements.hosts)
    for host in requirements.pod.hosts():
        if host not in own:
            yield host_ports(host, requirements.models[host])
    yield from (ManagementPorts(name, 2, 0, has_bmc=True) for name in requirements.manager_models)
    names = [switch.name for switch in switches if switch.tier != "leaf"]
    coming = _coming(requirements)
    for system in requirements.systems:
        if not system.paired:
            names += system.names_planned
    yield from (ManagementPorts("" if name in coming else name, 1, 0, has_bmc=False) for name in names)
    leaves: dict[int, list[str]] = defaultdict(list)
    for switch in switches:
        if switch.tier == "leaf":
            leaves[switch.unit].append(switch.name)
    said: set[str] = set()
    for unit in sorted({*leaves, *range(1, _units(requirements) + 1)}):
        blocks: list[str] = []
        for system in requirements.systems:
            if system.paired and unit:
                blocks += system.of_unit(unit - 1)
        parts = parts_of_unit(requirements, unit)
        for name in [*leaves[unit], *(block for block in blocks if block not in said), *parts]:
            yield ManagementPorts("" if name in coming else name, 1, 0, has_bmc=False)
        said.update(blocks)


def further_controllers(requirements: Requirements) -> Iterator[str]:
    """Yield the block of each controller beside its first, all planned ones; no name for one that is not there yet."""
    for system in requirements.systems:
        there = set(system.names)
        for name in system.names_planned:
            yield from [name if name in there else ""] * system.further_controllers


def controller_names(blocks: Iterable[str]) -> Iterator[str]:
    """Yield the name of each further controller: that of its block, and its number."""
    seen: Counter[str] = Counter()
    for block in blocks:
        seen[block] += 1
        yield f"{block}-c{seen[block] + 1}" if block else ""


def _coming(requirements: Requirements) -> set[str]:
    """Return the blocks that keep their ports and addresses, and come with later nodes."""
    names: set[str] = set()
    for system in requirements.systems:
        names |= set(system.names_planned[: system.room]) - set(system.names)
    return names


def _units(requirements: Requirements) -> int:
    units = [requirements.systems[0].units.now] if requirements.systems else [0]
    if requirements.domain is not None:
        units.append(units_of(len(requirements.hosts) + requirements.reserved, requirements.unit))
    return max(units)


def others_planned(requirements: Requirements, switches: Sequence[Switch], others: Sequence[ManagementPorts]) -> int:
    """Count the ports of all that is no node when the planned nodes are there."""
    leaves = sum(switch.tier == "leaf" for switch in switches)
    blocks = sum(len(system.names_planned) - system.room for system in requirements.systems)
    later = blocks + parts_later(requirements, _units(requirements))
    return sum(ports.slow for ports in others) - leaves + requirements.managed_leaves_planned + later
