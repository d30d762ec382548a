"""The profile of a few steps that a program left in its results: its own words, so anything may be in them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podwright.analysis.statistics import as_number

_MAX_ROWS = 15
_MAX_NAME = 160


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


def profile_of(document: Mapping[str, Any]) -> StepsProfile:
    """Return the profile that a document holds; a ValueError says what is wrong with it."""
    steps, wall_s, busy_s = (as_number(document.get(name)) for name in ("steps", "wall_s", "busy_s"))
    if not steps or not wall_s or busy_s is None or min(steps, wall_s) <= 0:
        raise ValueError("steps, wall_s and busy_s are no numbers above zero")
    rows = [(row, as_number(row.get("seconds"))) for row in _rows(document.get("operations"))]
    operations = [
        Operation(_name(row.get("name")), seconds, int(as_number(row.get("calls")) or 0))
        for row, seconds in rows
        if seconds is not None
    ]
    idle = [(row, as_number(row.get("seconds"))) for row in _rows(document.get("gaps"))]
    gaps = [IdleGap(seconds, _name(row.get("after")), _name(row.get("before"))) for row, seconds in idle if seconds]
    return StepsProfile(
        steps=int(steps),
        wall_s=wall_s,
        device=_name(document.get("device")),
        busy_s=busy_s,
        operations=tuple(operations),
        gaps=tuple(gaps),
        parts=_parts(document.get("parts")),
    )


def _parts(value: object) -> dict[str, float]:
    if not isinstance(value, Mapping):
        return {}
    numbers = {str(name): as_number(seconds) for name, seconds in value.items()}
    return {name: seconds for name, seconds in numbers.items() if seconds is not None}


def _rows(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (row for row in value[:_MAX_ROWS] if isinstance(row, Mapping))


def _name(value: object) -> str:
    return str(value or "")[:_MAX_NAME]
