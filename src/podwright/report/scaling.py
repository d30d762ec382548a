"""A scaling curve as a drawing: efficiency over nodes, each doubling as wide as the one before. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2
from typing import Any

from podwright.prove.scale import WEAK, ScalingCurve, SizeMeasured
from podwright.theme import words

_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 24.0, 12.0, 28.0
_LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
_STEPS = 24


def drawing_of(curve: ScalingCurve) -> dict[str, Any]:
    """Return what the page's drawing and its table need."""
    plot = _Plot(curve)
    band = [(size.size, size.predicted.low) for size in curve.sizes]
    band += [(size.size, size.predicted.high) for size in reversed(curve.sizes)]
    return {
        "kind": curve.kind,
        "width": _WIDTH,
        "height": _HEIGHT,
        "levels": [(plot.y(level), words.percent(level)) for level in _LEVELS],
        "points": [_point(plot, size) for size in curve.sizes],
        "band": plot.line([(size, plot.efficiency(size, time_s)) for size, time_s in band]),
        "law": plot.line(list(_law(curve, plot))),
    }


class _Plot:
    """Where sizes and efficiencies lie on the drawing."""

    def __init__(self, curve: ScalingCurve) -> None:
        self.first, last = curve.sizes[0], curve.sizes[-1]
        self.kind = curve.kind
        self._doublings = log2(last.size / self.first.size) or 1.0
        highest = [size.interval[1] for size in curve.sizes if size.interval]
        self._top = min(2.0, max([1.1, *highest]))

    def x(self, size: float) -> float:
        """Return the place of a size."""
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * log2(size / self.first.size) / self._doublings, 1)

    def y(self, efficiency: float) -> float:
        """Return the place of an efficiency; what is higher than the drawing is drawn at its edge."""
        share = min(efficiency, self._top) / self._top
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share, 1)

    def efficiency(self, size: float, time_s: float) -> float:
        """Return how well so many nodes are used that take so long."""
        gain = 1.0 if self.kind == WEAK else self.first.size / size
        return gain * self.first.median_s / time_s

    def line(self, points: list[tuple[float, float]]) -> str:
        """Return (size, efficiency) points as SVG writes them."""
        return " ".join(f"{self.x(size)},{self.y(efficiency)}" for size, efficiency in points)


def _law(curve: ScalingCurve, plot: _Plot) -> Iterator[tuple[float, float]]:
    if curve.law is None:
        return
    first, last = curve.sizes[0].size, curve.sizes[-1].size
    for step in range(_STEPS + 1):
        size = first * (last / first) ** (step / _STEPS)
        batch = size if curve.kind == WEAK else 1.0
        yield size, plot.efficiency(size, curve.law.step_s(size, batch))


def _point(plot: _Plot, size: SizeMeasured) -> dict[str, Any]:
    between, ends = words.NONE, None
    if size.interval is not None:
        between = f"{words.percent(size.interval[0])} to {words.percent(size.interval[1])}"
        ends = plot.y(size.interval[0]), plot.y(size.interval[1])
    predicted = f"{words.duration(size.predicted.low)} to {words.duration(size.predicted.high)}"
    times = [words.duration(size.median_s), words.duration(size.fitted_s), predicted]
    return {
        "x": plot.x(size.size),
        "y": plot.y(size.efficiency),
        "ends": ends,
        "size": size.size,
        "text": f"{size.size}: {words.percent(size.efficiency)}",
        "row": [size.size, len(size.samples), *times, words.percent(size.efficiency), between],
    }
