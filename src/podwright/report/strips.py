"""Samples and ratios as strips: dots, intervals and margins on an axis that all of a table share. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from podwright.analysis.bootstrap import median_interval
from podwright.prove import SidesCompared, is_time, method_text, p_text, pair_sentence
from podwright.prove.sides import Side
from podwright.theme import words

MARGIN = 0.03
LOOKS = {"same": "good", "different": "bad", "not proven": "open"}
_EDGE = 3.0
"""Room at both ends of an axis, in per cent, so that no mark is cut."""


@dataclass(frozen=True)
class StripAxis:
    """Where values lie on a drawing, in per cent of its width."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return the place of a value; what lies outside is drawn at the edge."""
        span = (self.high - self.low) or 1.0
        share = min(1.0, max(0.0, (value - self.low) / span))
        return round(_EDGE + (100 - 2 * _EDGE) * share, 2)


def view_of_pair(pair: SidesCompared) -> dict[str, Any]:
    """Return what pages show of two sides: the verdict, every sample on one axis, and what differs."""
    values = [*pair.a.samples, *pair.b.samples]
    axis = StripAxis(min(values, default=0.0), max(values, default=1.0))
    [row] = verdict_rows([pair])
    return {
        **row,
        "a": pair.a.name,
        "b": pair.b.name,
        "sentence": pair_sentence(pair),
        "method": method_text(pair).replace("\n", " "),
        "metric": words.metric_name(pair.metric.removesuffix("_s") if is_time(pair.metric) else pair.metric),
        "p": p_text(pair),
        "sides": [_side(side, pair.metric, axis) for side in (pair.a, pair.b)],
        "ends": [value_text(end, pair.metric) for end in (axis.low, axis.high)],
    }


def _side(side: Side, metric: str, axis: StripAxis) -> dict[str, Any]:
    middle, interval = median(side.samples), median_interval(side.samples)
    between = words.NONE
    if interval:
        between = f"{value_text(interval[0], metric)} to {value_text(interval[1], metric)}"
    return {
        "name": side.name,
        "n": len(side.samples),
        "runs": side.runs,
        "median": value_text(middle, metric),
        "interval": between,
        "left_out": side.left_out,
        "dots": [(axis.at(sample), value_text(sample, metric)) for sample in side.samples],
        "middle": axis.at(middle),
        "bar": (axis.at(interval[0]), axis.at(interval[1])) if interval else None,
    }


def value_text(value: float, metric: str) -> str:
    """Return a value of a metric with its unit, where it is a time."""
    return f"{words.number(value, 4)} s" if is_time(metric) else words.number(value, 4)


def verdict_rows(pairs: Sequence[SidesCompared]) -> list[dict[str, Any]]:
    """Return what a table of comparisons says and draws of each, all on one axis."""
    ends: list[float] = [1 - 2 * MARGIN, 1 + 2 * MARGIN]
    for pair in pairs:
        ends += pair.comparison.interval or (pair.comparison.ratio or 1.0,)
    axis = StripAxis(min(ends), max(ends))
    return [_verdict_row(pair, axis) for pair in pairs]


def _verdict_row(pair: SidesCompared, axis: StripAxis) -> dict[str, Any]:
    comparison = pair.comparison
    interval, p = comparison.interval, comparison.p
    return {
        "a": pair.a.name.partition("/")[2],
        "b": pair.b.name.partition("/")[2],
        "n": f"{comparison.n[0]} and {comparison.n[1]}",
        "ratio": words.number(comparison.ratio, 4),
        "interval": f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else words.NONE,
        "p": words.NONE if p is None else f"{p:.2g}",
        "verdict": comparison.verdict,
        "look": LOOKS[comparison.verdict],
        "needed": _needed(pair),
        "bar": (axis.at(interval[0]), axis.at(interval[1])) if interval else None,
        "middle": axis.at(comparison.ratio or 1.0),
        "margin": (axis.at(1 - comparison.margin), axis.at(1 + comparison.margin)),
        "one": axis.at(1.0),
        "causes": [cause.text for cause in pair.causes],
        "steps": [(step.name, _step(step.a), _step(step.b)) for step in pair.steps],
    }


def _needed(pair: SidesCompared) -> str:
    """Say how many runs would decide, and how long those that are still to be made take one after the other."""
    needed = pair.comparison.needed
    if not needed:
        return ""
    text = f"about {needed:,} runs a side would decide"
    lacking = [(max(0, needed - len(side.samples)), side.samples) for side in (pair.a, pair.b)]
    count = sum(number for number, _ in lacking)
    if count and all(samples for _, samples in lacking):
        seconds = sum(number * median(samples) for number, samples in lacking)
        text += f": {words.count(count, 'run')} more, {words.duration(seconds)}"
    return text


def _step(seconds: float | None) -> str:
    return words.duration(seconds, "not reported")
