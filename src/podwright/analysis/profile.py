"""The profile of a few steps that a program left in its results, as a report shows it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Operation:
    """A kernel, or on a CPU an operation: its own seconds over all steps that were looked at."""

    name: str
    seconds: float
    calls: int


@dataclass(frozen=True)
class IdleGap:
    """A stretch in which the GPU had nothing to do, and what it did before and after."""

    seconds: float
    after: str
    before: str


@dataclass(frozen=True)
class StepsProfile:
    """Where the time of a few steps went."""

    steps: int
    wall_s: float
    device: str
    busy_s: float
    operations: tuple[Operation, ...]
    gaps: tuple[IdleGap, ...]
    parts: Mapping[str, float]

    @property
    def busy(self) -> float:
        """Return the share of the time in which the device worked; several threads of a CPU may add up to more."""
        return min(1.0, self.busy_s / self.wall_s)

    @property
    def waited(self) -> float | None:
        """Return the share of the time that went into waiting for input; None where it was not told."""
        seconds = self.parts.get("input_s")
        if seconds is None:
            return None
        return min(1.0, seconds / self.wall_s)
