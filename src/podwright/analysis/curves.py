"""What the program said of itself over time: loss, quality, speed. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podwright.analysis.data import ReportData
from podwright.analysis.ranks import Span
from podwright.pilot.protocol import goal_reached
from podwright.runs.events import ResultTold
from podwright.theme import words

_POINTS = 2_000
_PROGRESS = frozenset({"step", "steps", "epoch", "epochs"})
NO_CURVE = _PROGRESS | {"mllog", "time_ms"}


@dataclass(frozen=True)
class CurvePoint:
    """One value a rank told, when, and at which step if it said so."""

    t: float
    step: float | None
    value: float


@dataclass(frozen=True)
class QualityGoal:
    """The quality that was asked for."""

    metric: str
    bound: float
    at_least: bool

    def reached_by(self, value: float) -> bool:
        """Return whether a value is good enough."""
        name = "at_least" if self.at_least else "at_most"
        return goal_reached({name: self.bound}, value)

    @property
    def text(self) -> str:
        """`at least 0.65`."""
        return f"at {'least' if self.at_least else 'most'} {words.score(self.bound)}"


@dataclass(frozen=True)
class Curve:
    """One named value of the run."""

    name: str
    points: tuple[CurvePoint, ...]
    goal: QualityGoal | None = None

    @property
    def title(self) -> str:
        """The name as a person says it."""
        return words.metric_name(self.name)


def goal_of(data: ReportData) -> QualityGoal | None:
    """The goal in what was asked, if there is one."""
    workload = data.asked.get("workload")
    goal = data.record.get("goal") or (workload.get("goal") if isinstance(workload, Mapping) else None)
    if not isinstance(goal, Mapping) or not isinstance(goal.get("metric"), str):
        return None
    for name, at_least in (("at_least", True), ("at_most", False)):
        if isinstance(goal.get(name), int | float):
            return QualityGoal(goal["metric"], float(goal[name]), at_least)
    return None


def curves_of(data: ReportData) -> list[Curve]:
    """Loss first, then the goal's metric, then the rest by name; a value told once is a figure, not a curve.

    When several ranks tell the same value the lowest rank's is drawn: ranks of one training tell the same story.
    """
    goal, told = goal_of(data), _told(data)
    wanted = goal.metric if goal else ""
    names = sorted(told, key=lambda name: (name != "loss", name != wanted, "loss" not in name, name))
    curves = [Curve(name, told[name], goal if name == wanted else None) for name in names]
    return _distinct([curve for curve in curves if len(curve.points) > 1])


def _distinct(curves: Sequence[Curve]) -> list[Curve]:
    """Without curves that say again what an earlier one says, as MLLOG's eval_accuracy does of the quality."""
    kept: dict[tuple[float, ...], Curve] = {}
    for curve in curves:
        kept.setdefault(tuple(point.value for point in curve.points), curve)
    return list(kept.values())


def _told(data: ReportData) -> dict[str, tuple[CurvePoint, ...]]:
    by_name: dict[str, dict[int, list[CurvePoint]]] = {}
    steps: dict[int, float] = {}
    for event in data.of(ResultTold):
        if "step" in event.values:
            steps[event.rank] = float(event.values["step"])
        for name, value in event.values.items():
            if name not in NO_CURVE and not name.startswith("iou."):
                point = CurvePoint(event.time, steps.get(event.rank), float(value))
                by_name.setdefault(name, {}).setdefault(event.rank, []).append(point)
    return {name: tuple(by_rank[min(by_rank)]) for name, by_rank in by_name.items()}


def progress_of(data: ReportData) -> Mapping[str, float]:
    """Return the last step, steps, epoch and epochs that were told."""
    last: dict[str, float] = {}
    for event in data.of(ResultTold):
        last |= {name: float(event.values[name]) for name in _PROGRESS if name in event.values}
    return last


def curve_json(curve: Curve, span: Span, label: str = "", line: int = 0) -> dict[str, Any]:
    """A curve as the page's script reads it; `line` picks its colour."""
    points = thin(curve.points)
    steps = [p.step for p in points] if all(p.step is not None for p in points) else None
    return {
        "label": label or curve.title,
        "line": line,
        "time": [round(p.t - span.start, 2) for p in points],
        "step": steps,
        "values": [float(f"{p.value:.5g}") for p in points],
    }


def overlaid(name: str, runs: Sequence[tuple[ReportData, Span]]) -> dict[str, Any]:
    """One value of several runs as lines of one chart."""
    lines, goal = [], None
    for i, (data, span) in enumerate(runs):
        curve = next((curve for curve in curves_of(data) if curve.name == name), None)
        if curve is not None:
            lines.append(curve_json(curve, span, str(data.record.get("id")), i))
            goal = goal or curve.goal
    return {
        "key": name,
        "title": words.metric_name(name),
        "goal": goal.bound if goal else None,
        "goalText": f"goal {goal.text}" if goal else "",
        "lines": lines,
    }


def thin(points: Sequence[CurvePoint], limit: int = _POINTS) -> list[CurvePoint]:
    """At most `limit` points, the least and the greatest of every stretch kept."""
    if len(points) <= limit:
        return list(points)
    width = math.ceil(len(points) / (limit // 2))
    kept: list[CurvePoint] = []
    for at in range(0, len(points), width):
        stretch = points[at : at + width]
        ends = {id(p): p for p in (min(stretch, key=_value), max(stretch, key=_value))}
        kept += sorted(ends.values(), key=lambda p: p.t)
    return kept


def _value(point: CurvePoint) -> float:
    return point.value


def curve_rows(curve: Curve, span: Span, limit: int = 24) -> list[Mapping[str, str]]:
    """The curve in words, evenly thinned, its first and last value kept."""
    points, last = curve.points, len(curve.points) - 1
    picks = sorted({round(i * last / (limit - 1)) for i in range(limit)}) if last >= limit else range(last + 1)
    return [
        {
            "time": words.duration(points[i].t - span.start),
            "step": words.number(points[i].step),
            "value": words.number(points[i].value, 4),
        }
        for i in picks
    ]
