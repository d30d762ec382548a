"""What a run told, as tools that draw curves take it: of each name one rank's values, with whole steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podwright.runs.fold import NOT_RESULTS
from podwright.runs.series import ToldValue

NOT_CURVES = NOT_RESULTS | {"step", "epoch"}


class Point(NamedTuple):
    """One value of a curve."""

    name: str
    step: int
    t: float
    value: float


def points_of(series: Iterable[ToldValue], began: float) -> list[Point]:
    """Return the values of the lowest rank that told a name, in order of time; of all attempts.

    What was told without a step stands at the whole second of the run.
    """
    teller: dict[str, int] = {}
    found: list[tuple[int, Point]] = []
    for value in series:
        if value.name in NOT_CURVES:
            continue
        teller[value.name] = min(value.rank, teller.get(value.name, value.rank))
        step = max(0, value.t - began) if value.step is None else value.step
        found.append((value.rank, Point(value.name, int(step), value.t, value.value)))
    chosen = {point for rank, point in found if teller[point.name] == rank}
    return sorted(chosen, key=lambda point: (point.t, point.step, point.name))
