"""A suite over its rounds: every run a dot, the median a line, and where a level changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from podwright.prove import CellVerdict, GateVerdict
from podwright.prove.suite_folder import Cell, CellKey, SuiteFolder, histories
from podwright.report.strips import value_text
from podwright.theme import words

WIDTH, HEIGHT = 640, 132
MAX_ROUNDS = 60
_LEFT, _RIGHT, _TOP, _BOTTOM = 84.0, 16.0, 12.0, 24.0
_LABELS = 12


def history_of(folder: SuiteFolder, gate: GateVerdict) -> list[dict[str, Any]]:
    """Return the drawing of each cell that the gate judged, with what it says of it."""
    known = histories(folder)
    return [_row(gate, verdict, known) for verdict in gate.cells]


def _row(gate: GateVerdict, verdict: CellVerdict, known: Mapping[CellKey, Sequence[Cell]]) -> dict[str, Any]:
    judged = verdict.judged
    key = replace(verdict.history[-1].key, image="") if verdict.history else None
    cells = [cell for cell in known.get(key, ()) if cell.values(gate.metric)] if key else []
    accepted = [change.round for change in gate.accepted if change.key == key]
    return {
        "name": verdict.name.partition("/")[2],
        "verdict": judged.verdict,
        "ratio": words.number(judged.ratio, 4),
        "interval": f"{judged.interval[0]:.3f} to {judged.interval[1]:.3f}" if judged.interval else words.NONE,
        "n": f"{judged.n[0]} and {judged.n[1]}",
        "needed": judged.needed,
        "since": verdict.since.round if verdict.since else None,
        "same_version": verdict.same_version,
        "causes": [cause.text for cause in verdict.causes],
        "commits": list(verdict.commits),
        "drawing": _drawing(cells[-MAX_ROUNDS:], gate.metric, verdict.since, accepted) if cells else None,
        "rounds": [_round(cell, gate.metric) for cell in cells[-MAX_ROUNDS:]],
    }


def _round(cell: Cell, metric: str) -> dict[str, Any]:
    values = cell.values(metric)
    return {
        "round": cell.round,
        "n": len(values),
        "median": value_text(median(values), metric),
        "ends": f"{value_text(min(values), metric)} to {value_text(max(values), metric)}",
        "version": cell.version[:19],
    }


def _drawing(cells: Sequence[Cell], metric: str, since: Cell | None, accepted: Sequence[int]) -> dict[str, Any]:
    samples = [(cell.round, cell.values(metric)) for cell in cells]
    place = _Place(samples)
    step = max(1, len(samples) // _LABELS)
    dots: list[tuple[float, float]] = []
    for number, values in samples:
        dots += [(place.x(number), place.y(value)) for value in values]
    return {
        "dots": dots,
        "line": " ".join(f"{place.x(number)},{place.y(median(values))}" for number, values in samples),
        "labels": [(place.x(number), number) for number, _ in samples[::step]],
        "levels": [(place.y(value), value_text(value, metric)) for value in dict.fromkeys((place.high, place.low))],
        "change": None if since is None else place.before(since.round),
        "accepted": [place.before(number) for number in accepted if number > samples[0][0]],
    }


class _Place:
    """Where rounds and values lie on a drawing."""

    def __init__(self, samples: Sequence[tuple[int, Sequence[float]]]) -> None:
        self._first, self._last = samples[0][0], samples[-1][0]
        self.low = min(min(values) for _, values in samples)
        self.high = max(max(values) for _, values in samples)

    def x(self, number: float) -> float:
        """Return the place of a round."""
        share = (number - self._first) / ((self._last - self._first) or 1)
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * share, 1)

    def before(self, number: int) -> float:
        """Return the place between a round and the one before it."""
        return self.x(number - 0.5)

    def y(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share, 1)
