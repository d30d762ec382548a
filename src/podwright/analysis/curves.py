"""What the program said of itself over time: loss, quality, speed. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from podwright.analysis.data import QualityGoal, ReportData
from podwright.analysis.ranks import Span
from podwright.analysis.reported import CurvePoint
from podwright.theme import words

_POINTS, _MIN_POINTS = 2_000, 100
_CHART_POINTS = 20_000
"""Of all lines of a chart together: a sweep of many points has that many lines."""


@dataclass(frozen=True)
class Curve:
    """One named value of the run."""

    name: str
    points: tuple[CurvePoint, ...]
    goal: QualityGoal | None = None

    @property
    def title(self) -> str:
        """Return the name as a person says it."""
        return words.metric_name(self.name)


def curves_of(data: ReportData) -> list[Curve]:
    """Return loss first, then the goal's metric, then the rest by name; a value told once is a figure, not a curve."""
    goal, points = data.goal, data.told.curves
    goals = {goal.metric: goal} if goal else {}
    names = sorted(points, key=lambda name: (name != "loss", name not in goals, "loss" not in name, name))
    curves = [Curve(name, points[name], goals.get(name)) for name in names]
    return _distinct([curve for curve in curves if len(curve.points) > 1])


def _distinct(curves: Sequence[Curve]) -> list[Curve]:
    """Leave out curves that say again what an earlier one says, as MLLOG's eval_accuracy does of the quality."""
    distinct: dict[tuple[float, ...], Curve] = {}
    for curve in curves:
        distinct.setdefault(tuple(point.value for point in curve.points), curve)
    return list(distinct.values())


def _line(curve: Curve, span: Span, label: str, line: int, limit: int) -> dict[str, Any]:
    """Return a curve as the page's script reads it; `line` picks its colour."""
    points = thin(curve.points, limit)
    steps = [p.step for p in points]
    return {
        "label": label,
        "line": line,
        "time": [round(span.at(p.t), 2) for p in points],
        "step": None if None in steps else steps,
        "values": [float(f"{p.value:.5g}") for p in points],
    }


def curve_of(data: ReportData, name: str) -> Curve | None:
    """Return the curve of this name, if there is one."""
    return next((curve for curve in curves_of(data) if curve.name == name), None)


def overlaid(name: str, runs: Sequence[tuple[ReportData, Span]], labels: Sequence[str]) -> dict[str, Any]:
    """Return one value of several runs as lines of one chart, under their labels."""
    chart: dict[str, Any] = {"key": name, "title": words.metric_name(name), "goal": None, "goalText": "", "lines": []}
    limit = min(_POINTS, max(_MIN_POINTS, _CHART_POINTS // max(len(runs), 1)))
    for i, (data, span) in enumerate(runs):
        curve = curve_of(data, name)
        if curve is None:
            continue
        chart["lines"].append(_line(curve, span, labels[i], i, limit))
        if curve.goal and chart["goal"] is None:
            chart |= {"goal": curve.goal.bound, "goalText": f"goal {curve.goal.text}"}
    return chart


def thin(points: Sequence[CurvePoint], limit: int = _POINTS) -> list[CurvePoint]:
    """Return at most `limit` points, the least and the greatest of every stretch among them."""
    if len(points) <= limit:
        return list(points)
    width = math.ceil(len(points) / (limit // 2))
    thinned: list[CurvePoint] = []
    for at in range(0, len(points), width):
        stretch = points[at : at + width]
        # In a flat stretch the least point is the greatest too: by identity it is taken once.
        ends = {id(p): p for p in (min(stretch, key=attrgetter("value")), max(stretch, key=attrgetter("value")))}
        thinned += sorted(ends.values(), key=lambda p: p.t)
    return thinned


def curve_rows(curve: Curve, span: Span, limit: int = 24) -> list[Mapping[str, str]]:
    """Return the curve in words, evenly thinned, its first and last value kept."""
    points, last = curve.points, len(curve.points) - 1
    picks: Sequence[int] = range(last + 1)
    if last >= limit:
        picks = sorted({round(i * last / (limit - 1)) for i in range(limit)})
    return [
        {
            "time": words.duration(span.at(points[i].t)),
            "step": words.number(points[i].step),
            "value": words.number(points[i].value, 4),
        }
        for i in picks
    ]
