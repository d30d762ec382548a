"""Which nodes belong together: the scalable units of a pod, in which a job stays on one layer of leaf switches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.spec import Pod


def unit_size(pod: Pod) -> int | None:
    """Nodes of a scalable unit; None where the pod has no compute fabric that says so."""
    fabric = pod.compute_fabric()
    return fabric.scalable_unit if fabric else None


def unit_name(number: int) -> str:
    """What schedulers and labels call a scalable unit; the first is 1."""
    return f"su{number}"


def scalable_units(pod: Pod) -> list[list[str]]:
    """The compute hosts unit by unit, in the order of the file; one unit when the fabric has none.

    Slots that are kept for the fabric manager are the last of the first unit.
    """
    hosts, fabric = pod.compute_hosts(), pod.compute_fabric()
    size = unit_size(pod) or max(len(hosts), 1)
    first = size - (fabric.reserved_slots if fabric else 0)
    return [hosts[:first], *(hosts[i : i + size] for i in range(first, len(hosts), size))]
