"""Sizes at which a fabric becomes dear: where a few nodes less, or another layout, take far fewer switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from podwright.design.sizing import ComputeParameters, ComputeSize, divided, size_compute, spread, units_of
from podwright.design.sizing_storage import StorageSize, size_storage
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.design.requirements import Requirements

Size = ComputeSize | StorageSize
# A size is worth naming where its switches for each node are so much fewer, and it has so many of the nodes at least.
CHEAPER, NEAR = 0.8, 0.75
# Spines that use less of their ports than this are worth a word.
IDLE_PORTS = 0.7


def switches_of(requirements: Requirements, nodes: int) -> int | None:
    """Return the switches of the compute and storage fabrics of so many nodes; None where they are refused."""
    try:
        total = 0
        if requirements.compute is not None:
            total += _total(size_compute(replace(requirements.compute, nodes=nodes, nodes_planned=nodes)))
        if requirements.storage is not None:
            total += _total(size_storage(replace(requirements.storage, nodes=nodes, nodes_planned=nodes)))
    except Refusal:
        return None
    return total


def cheaper_size(requirements: Requirements) -> tuple[int, int, int] | None:
    """Return the next smaller number of nodes that takes far fewer switches for each, with both numbers of switches."""
    nodes = requirements.planned
    here = switches_of(requirements, nodes)
    if not here:
        return None
    for fewer in range(nodes - 1, max(int(nodes * NEAR), 1) - 1, -1):
        switches = switches_of(requirements, fewer)
        if switches and switches / fewer <= CHEAPER * here / nodes:
            return fewer, switches, here
    return None


def cliff_notes(requirements: Requirements, compute: ComputeSize | None) -> Iterator[str]:
    """Yield what a reader should know before switches are bought."""
    cheaper = cheaper_size(requirements)
    if cheaper is not None:
        fewer, switches, here = cheaper
        yield f"{fewer:,} nodes need {switches:,} fabric switches where {requirements.planned:,} need {here:,}"
    yield from _single_notes(requirements)
    if requirements.compute is not None and compute is not None:
        yield from _idle_notes(requirements.compute, compute)


def _single_notes(requirements: Requirements) -> Iterator[str]:
    """Yield the fabrics whose ports one switch has."""
    compute, storage = requirements.compute, requirements.storage
    if compute is not None and compute.layout != "single" and compute.planes == 1:
        single = replace(compute, layout="single")
        yield from _saved("compute", lambda: size_compute(compute), lambda: size_compute(single))
    if storage is not None and storage.layout != "single":
        # The nodes of one switch are one unit.
        alone = replace(storage, layout="single", unit=storage.planned + storage.reserved_slots)
        yield from _saved("storage", lambda: size_storage(storage), lambda: size_storage(alone))


def _saved(name: str, size: Callable[[], Size], single: Callable[[], Size]) -> Iterator[str]:
    try:
        switches, saved = _total(size()), _total(size()) - _total(single())
    except Refusal:
        return
    if saved:
        yield f"{name}: one switch has all ports: `layout: single` saves {saved} of {switches} switches"


def _total(size: Size) -> int:
    return size.leaf + size.spine + size.core


def _idle_notes(ask: ComputeParameters, size: ComputeSize) -> Iterator[str]:
    """Yield that spines have ports to spare since up-links must spread evenly, and what would take fewer of them."""
    units = units_of(ask.planned + ask.reserved_slots, ask.unit)
    if size.tiers != 2 or units < 2 or ask.oversubscription <= 1:
        return
    used = size.plane_leaves * size.links
    if used >= IDLE_PORTS * ask.switch_ports:
        return
    for up in range(size.leaf_up - 1, size.leaf_up // 2, -1):
        spines = spread(size.plane_leaves, up, ask.switch_ports)
        ratio = f"{size.leaf_down / up:.3g}"
        takes_up = divided(size.leaf_down, float(ratio)) == up
        if takes_up and spines is not None and spines <= CHEAPER * size.spines_per_plane:
            text = (
                f"{size.spine} spines use {used} of {ask.switch_ports} ports: {size.leaf_up} up-links of a leaf spread"
            )
            yield f"{text} over no fewer; `oversubscription: {ratio}` ({up} up-links) takes {spines * ask.planes}"
            return
