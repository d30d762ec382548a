"""The storage systems of a pod: how many building blocks each has, and which of them a storage port leads to.

Blocks that are paired with nodes belong to scalable units, so that a pod that grows gets new blocks for its new units
and keeps the cables of the old ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.spec import Pod, Storage


@dataclass(frozen=True, slots=True)
class Units:
    """Scalable units now and as planned, and the slots of each."""

    now: int
    planned: int
    slots: int


@dataclass(frozen=True, slots=True)
class System:
    """One storage system; `planned` is its number of blocks, or None where that is not known."""

    storage: Storage
    units: Units
    planned: int | None
    paired: bool

    @property
    def blocks(self) -> int | None:
        """Return the blocks that are there now."""
        if self.planned is None or not self.paired:
            return self.planned
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

    def of_unit(self, unit: int) -> list[str]:
        """Return the blocks that serve a unit, from 0; all of them where they are not paired with nodes."""
        if not self.paired:
            return self.names_planned
        first, end = self._first(unit), self._first(unit + 1)
        return self.names_planned[first:end] or self.names_planned[max(first - 1, 0) : max(first, 1)]

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


def storage_ends(systems: Sequence[System], ports: int, per_unit: int) -> list[tuple[str, int]]:
    """Return the device and its port behind each storage port: in turn over the systems, then over their blocks."""
    taken: Counter[str] = Counter()
    turns: Counter[str] = Counter()
    ends = []
    for port in range(ports):
        unit, index = divmod(port, per_unit)
        names, key = ["storage"], ""
        if systems:
            system = systems[index % len(systems)]
            names, key = system.of_unit(unit), system.storage.name
            # Blocks that are paired with nodes take turns within their unit only. A name has no slash.
            if system.paired:
                key += f"/{unit}"
        device = names[turns[key] % len(names)]
        turns[key] += 1
        taken[device] += 1
        ends.append((device, taken[device]))
    return ends
