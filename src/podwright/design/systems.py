"""The storage systems of a pod: how many building blocks each has, and which of them a storage port leads to.

Blocks that are paired with nodes belong to scalable units, so that a pod that grows gets new blocks for its new units
and keeps the cables of the old ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.spec import Pod, Storage

# What a port of 200 Gb/s carries, where the switch does not say its speed.
PORT_BYTES_S = 25e9


@dataclass(frozen=True, slots=True)
class Units:
    """Scalable units now and as planned, the slots of each, and the nodes that are there now."""

    now: int
    planned: int
    slots: int
    nodes: int


@dataclass(frozen=True, slots=True)
class System:
    """One storage system; `planned` is the number of blocks that it keeps room for, or None where that is not known.

    Blocks that are paired with nodes have a place for every slot of a unit, and are there as far as its nodes are; of
    others the first `cabled` are there now, where the rest wait for ports that come with planned nodes.
    """

    storage: Storage
    units: Units
    planned: int | None
    paired: bool
    cabled: int | None = None

    @property
    def blocks(self) -> int | None:
        """Return the blocks that are there now."""
        model = self.storage.model
        if self.planned is None or not self.paired or model is None or model.blocks_per_nodes is None:
            return self.cabled or self.planned
        blocks, nodes = model.blocks_per_nodes
        return max(min(ceil(self.units.nodes * blocks / nodes), self.room), 1)

    @property
    def room(self) -> int:
        """Return the blocks that the units of now keep room for."""
        if not self.paired:
            return self.planned or 1
        return max(self._first(self.units.now), 1)

    @property
    def names(self) -> list[str]:
        """Return what its storage ports lead to now: its blocks, or the system as a whole."""
        return self.names_planned[: self.blocks or 1]

    @property
    def names_planned(self) -> list[str]:
        """Return the same when all planned units are there."""
        if self.planned is None:
            return [self.storage.name]
        return [f"{self.storage.name}-{number:02d}" for number in range(1, self.planned + 1)]

    @property
    def further_controllers(self) -> int:
        """Return how many controllers a block has beside the first."""
        model = self.storage.model
        return model.controllers - 1 if model else 0

    def of_unit(self, unit: int) -> list[str]:
        """Return the blocks that serve a unit, from 0; all of them where they are not paired with nodes."""
        if not self.paired:
            return self.names_planned
        first, end = self._first(unit), self._first(unit + 1)
        return self.names_planned[first:end] or self.names_planned[max(first - 1, 0) : max(first, 1)]

    def cables(self, port_bytes_s: float) -> int:
        """Return the cables that its planned blocks need to give what they read; one to a block at the least."""
        model = self.storage.model
        read_bytes_s = (model.read_bytes_s if model else None) or 0
        return (self.planned or 1) * max(ceil(read_bytes_s / port_bytes_s), 1)

    def _first(self, unit: int) -> int:
        return ceil(unit * (self.planned or 0) / self.units.planned)


def systems_of(pod: Pod, units: Units) -> list[System]:
    """Return the storage systems; blocks follow from the bandwidth, else from the published pairing with nodes."""
    systems = []
    for storage in pod.storage:
        model, planned, paired = storage.model, None, False
        if model is not None and storage.bandwidth_bytes_s and model.read_bytes_s:
            planned = ceil(storage.bandwidth_bytes_s / model.read_bytes_s)
        elif model is not None and model.blocks_per_nodes:
            blocks, each = model.blocks_per_nodes
            planned, paired = ceil(units.planned * units.slots * blocks / each), True
        systems.append(System(storage, units, planned, paired))
    return systems


def storage_ends(
    systems: Sequence[System], ports: int, per_unit: int, port_bytes_s: float = PORT_BYTES_S
) -> list[tuple[str, int] | None]:
    """Return the device and its port behind each storage port; None where a block comes with later nodes.

    Blocks without a cable come first, then each system in its share of all cables that are needed. What a port leads to
    depends on the ports before it alone, so that growth moves no cable.
    """
    if not systems:
        return [("storage", port + 1) for port in range(ports)]
    deal = _Deal(systems, [system.cables(port_bytes_s) for system in systems])
    present = set(chain.from_iterable(system.names for system in systems))
    ends = (deal.end(port // per_unit) for port in range(ports))
    return [end if end[0] in present else None for end in ends]


class _Deal:
    """Deals storage ports to systems, and the ports of a system to its blocks in turn."""

    def __init__(self, systems: Sequence[System], needs: Sequence[int]) -> None:
        self.systems, self.needs = systems, needs
        self.dealt = [0] * len(systems)
        self.turns: Counter[tuple[int, int]] = Counter()
        self.taken: Counter[str] = Counter()
        self.unit, self.names = -1, [[""]]

    def end(self, unit: int) -> tuple[str, int]:
        if unit != self.unit:
            self.unit, self.names = unit, [system.of_unit(unit) for system in self.systems]
        # Blocks that are paired with nodes take turns within their unit only.
        keys = [(index, unit if system.paired else 0) for index, system in enumerate(self.systems)]
        bare = [index for index, key in enumerate(keys) if self.turns[key] < len(self.names[index])]
        chosen = min(bare or range(len(keys)), key=lambda index: (self.dealt[index] + 1) / self.needs[index])
        names = self.names[chosen]
        device = names[self.turns[keys[chosen]] % len(names)]
        self.turns[keys[chosen]] += 1
        self.dealt[chosen] += 1
        self.taken[device] += 1
        return device, self.taken[device]


def without_cable(systems: Sequence[System], ends: Sequence[tuple[str, int] | None]) -> list[str]:
    """Return the blocks, and systems of one name, that no storage port leads to."""
    reached = {end[0] for end in ends if end is not None}
    missing: list[str] = []
    for system in systems:
        if system.storage.model is not None:
            missing += [name for name in system.names if name not in reached]
    return missing
