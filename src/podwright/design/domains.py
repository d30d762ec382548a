"""NVLink domains: racks whose nodes are one machine for their GPUs, and are bought, placed and scheduled together.

A domain fills a rack: its nodes, the trays that switch NVLink between them, and the shelves that feed all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import NodeModel
    from podwright.spec.hardware import NvlinkDomain

NVLINK_SWITCH, POWER_SHELF = "nvlink switch", "power shelf"
# What stands in a rack of a domain beside its nodes: the kind of device -> the words of its name and of its model.
PARTS = {NVLINK_SWITCH: ("switch", "nvlink-switch"), POWER_SHELF: ("shelf", "power-shelf")}


def domain_name(number: int) -> str:
    """Return the name of a domain, counted from 0."""
    return f"nvl{number + 1:02d}"


def part_names(domain: NvlinkDomain, number: int, kind: str) -> list[str]:
    """Return the names of the parts of a kind in the rack of a domain, counted from 0."""
    count = {NVLINK_SWITCH: domain.switches, POWER_SHELF: domain.power_shelves}[kind]
    return [f"{domain_name(number)}-{PARTS[kind][0]}{part}" for part in range(1, count + 1)]


def all_parts(domain: NvlinkDomain, number: int) -> list[str]:
    """Return the names of all parts in the rack of a domain."""
    return list(chain.from_iterable(part_names(domain, number, kind) for kind in PARTS))


def shared_domain(models: Iterable[NodeModel]) -> NvlinkDomain | None:
    """Return the domain that nodes of one fabric are trays of, or refuse nodes of several kinds."""
    kinds = {model.nvlink_domain: model.name or "a node" for model in models}
    if len(kinds) > 1:
        raise refuse(
            f"nodes in NVLink domains of different kinds share one fabric: {' and '.join(sorted(kinds.values()))}",
            hint="give each kind a pod of its own",
            field="nodes",
        )
    return next(iter(kinds), None)


def check_unit(domain: NvlinkDomain, unit: int, units: int) -> None:
    """Refuse scalable units that tear a domain apart."""
    if units < 2 or unit % domain.nodes == 0:
        return
    near = max(unit // domain.nodes, 1) * domain.nodes
    raise refuse(
        f"units of {unit} nodes tear NVLink domains of {domain.nodes} apart",
        hint=f"write `scalable_unit: {near}`, or another multiple of {domain.nodes}",
        field="fabrics.compute.scalable_unit",
    )
