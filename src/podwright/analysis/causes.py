"""What differs between two sides of a comparison, and where the time of their steps went. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median

from podwright.analysis.differences import differences
from podwright.analysis.statistics import median as middle
from podwright.analysis.traits import STEPS, SensorValue, Traits

MIN_APART = 0.02
"""SensorValue values that are closer are not named: sensors differ that much by themselves."""
_NAME = ("workload", "name")
_MAX_TEXT = 60


@dataclass(frozen=True)
class Cause:
    """One difference: `step` (where time went), `measured` (by sensors), or what was given by the kind that it has."""

    kind: str
    what: str
    a: str | float | None
    b: str | float | None
    text: str


@dataclass(frozen=True)
class StepTime:
    """The seconds of a run that went into one part of its steps, in the middle of each side; None: not reported."""

    name: str
    a: float | None
    b: float | None

    @property
    def apart_s(self) -> float | None:
        """Return how much longer it took on side B."""
        if self.a is None or self.b is None:
            return None
        return self.b - self.a


def step_times(a: Sequence[Traits], b: Sequence[Traits]) -> list[StepTime]:
    """Return the parts of a step, whether they were reported or not."""
    return [StepTime(name, _middle(a, name), _middle(b, name)) for name in STEPS]


def step_shares(side: Sequence[Traits]) -> dict[str, float]:
    """Return which share of the time of their steps went into each part that was reported; they sum to the whole."""
    parts = {name: seconds for name in STEPS if (seconds := _middle(side, name)) is not None}
    total = sum(parts.values())
    return {name: seconds / total for name, seconds in parts.items()} if total > 0 else {}


def _middle(side: Sequence[Traits], name: str) -> float | None:
    return middle([traits.steps[name] for traits in side if name in traits.steps])


def causes_of(a: Sequence[Traits], b: Sequence[Traits]) -> list[Cause]:
    """Return all differences, the most telling first: steps by seconds, sensors by share, then what was given."""
    return [*_of_steps(a, b), *_of_sensors(a, b), *_of_settings(a, b)]


def _of_steps(a: Sequence[Traits], b: Sequence[Traits]) -> Iterator[Cause]:
    """Yield the parts of the steps that explain at least a tenth of what all of them differ by."""
    apart = {step: step.apart_s for step in step_times(a, b)}
    reported = {step: seconds for step, seconds in apart.items() if seconds}
    total = sum(abs(seconds) for seconds in reported.values())
    for step, seconds in sorted(reported.items(), key=lambda item: -abs(item[1])):
        if abs(seconds) >= 0.1 * total:
            text = f"{step.name} {seconds:+.2f} s, {abs(seconds) / total:.0%} of what the steps differ by"
            yield Cause("step", step.name, step.a, step.b, text)


def _of_sensors(a: Sequence[Traits], b: Sequence[Traits]) -> list[Cause]:
    rows: list[tuple[float, Cause]] = []
    for name in _names(traits.measured for traits in (*a, *b)):
        left = [traits.measured[name] for traits in a if name in traits.measured]
        right = [traits.measured[name] for traits in b if name in traits.measured]
        if left and right and not _overlap(left, right):
            low, high = middle_of(left), middle_of(right)
            share = abs(high.value - low.value) / max(abs(high.value), abs(low.value))
            if share >= MIN_APART:
                text = f"{name} {low.text} and {high.text}"
                rows.append((share, Cause("measured", name, low.value, high.value, text)))
    return [cause for _, cause in sorted(rows, key=lambda row: -row[0])]


def _names(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return all keys in the order in which they first come."""
    return list(dict.fromkeys(chain.from_iterable(rows)))


def _overlap(left: Sequence[SensorValue], right: Sequence[SensorValue]) -> bool:
    lows, highs = [reading.value for reading in left], [reading.value for reading in right]
    return max(lows) >= min(highs) and max(highs) >= min(lows)


def middle_of(readings: Sequence[SensorValue]) -> SensorValue:
    """Return the median of what a sensor gave in several runs."""
    return SensorValue(median(reading.value for reading in readings), readings[0].unit)


def _of_settings(a: Sequence[Traits], b: Sequence[Traits]) -> Iterator[Cause]:
    for row in differences([traits.settings for traits in a], [traits.settings for traits in b]):
        if (row.kind, row.name) == _NAME:  # which makes nothing slower
            continue
        yield Cause(row.kind, row.name, row.a, row.b, f"{row.name} {_short(row.a)} and {_short(row.b)}")


def _short(text: str | None) -> str:
    if text is None:
        return "none"
    if len(text) > _MAX_TEXT:
        return f"{text[: _MAX_TEXT - 3]}..."
    return text
