"""Whether intervals hold what they say: sizes that were measured are left out, predicted, and counted.

Between measured sizes and beyond them are two questions, so they are counted apart: a middle size is left out with all
others there, and the largest with none above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from math import comb
from typing import Any

from podwright.design.predict.series import AskedSize, Series, SizeForecast, forecast_size

SURE = 0.95
LEAST_SIZES = 3
"""Of a series with fewer none can be left out."""
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many sizes were left out, how many of them their intervals held, and how many nothing was said about."""

    n: int
    held: int
    refused: int = 0

    @property
    def share(self) -> float | None:
        """Return which share was held; None where nothing was left out."""
        return self.held / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return between which shares the true one lies, as surely as 95 %."""
        return binomial_interval(self.held, self.n) if self.n else None

    @property
    def text(self) -> str:
        """Return it in words: `27 of 29 (77 to 99 %)`."""
        if self.interval is None:
            return "none to try it on"
        low, high = self.interval
        return f"{self.held} of {self.n} ({100 * low:.0f} to {100 * high:.0f} %)"

    def as_json(self) -> dict[str, Any]:
        """Return it as `predict --series` has it."""
        return {
            "n": self.n,
            "held": self.held,
            "share": self.share,
            "interval": self.interval,
            "refused": self.refused,
        }


PUBLISHED_BETWEEN, PUBLISHED_BEYOND = Coverage(46, 44), Coverage(29, 27)
"""The same on the 29 published series of MLPerf; a test counts both again."""


def between(series: Iterable[Series]) -> Coverage:
    """Count the middle sizes, each left out once: interpolation."""
    return _counted(_tried(measured, range(1, len(measured.points) - 1)) for measured in series)


def beyond(series: Iterable[Series]) -> Coverage:
    """Count the largest sizes, each predicted from all smaller ones: extrapolation."""
    return _counted(_tried(measured, [len(measured.points) - 1]) for measured in series)


def _tried(measured: Series, places: Iterable[int]) -> Iterator[tuple[float, SizeForecast | None]]:
    """Yield the seconds of each of these sizes with what the others say of it; None where they say nothing."""
    if len(measured.points) < LEAST_SIZES:
        return
    for place in places:
        point = measured.points[place]
        others = replace(measured, points=measured.points[:place] + measured.points[place + 1 :], asked=())
        turn, asked = others.turns_at, AskedSize(point.count, point.batch, point.samples)
        is_told = turn is None or point.count <= turn
        yield point.time_s, forecast_size(others, asked) if is_told else None


def _counted(tries: Iterable[Iterable[tuple[float, SizeForecast | None]]]) -> Coverage:
    n = held = refused = 0
    for series in tries:
        for time_s, forecast in series:
            if forecast is None:
                refused += 1
                continue
            n += 1
            held += forecast.time_s.low <= time_s <= forecast.time_s.high
    return Coverage(n, held, refused)


def binomial_interval(held: int, n: int) -> tuple[float, float]:
    """Return the exact interval of a share (Clopper and Pearson): no share outside would give this count but rarely."""
    rare = (1 - SURE) / 2
    low = _share_where(lambda share: 1 - _at_most(held - 1, n, share) < rare) if held else 0.0
    high = _share_where(lambda share: _at_most(held, n, share) > rare) if held < n else 1.0
    return low, high


def _share_where(is_below: Callable[[float], bool]) -> float:
    """Return the share up to which this holds."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return low


def _at_most(held: int, n: int, share: float) -> float:
    return sum(comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(held + 1))
