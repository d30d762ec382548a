"""What the scaling law is off by on published series: each fitted on its ends, its middle predicted, as a table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from podwright.design.predict.scaling import ScalingPoint, fit, predict

_KEY = itemgetter("round", "submitter", "accelerator", "benchmark")


@dataclass(frozen=True, slots=True)
class Series:
    """One benchmark on several sizes of one kind of machine; without batches these are taken as all the same."""

    name: str
    points: tuple[ScalingPoint, ...]
    batch_known: bool

    @property
    def fixed_share(self) -> float:
        """Return the fixed part of a step on the smallest size."""
        first = self.points[0]
        return fit(first, self.points[-1]).fixed_s / first.step_s


@dataclass(frozen=True, slots=True)
class Error:
    """A middle size of a series: published and predicted seconds."""

    series: str
    count: int
    published_s: float
    predicted_s: float
    guessed_s: float

    @property
    def error(self) -> float:
        """Return the error of the prediction that knows how many samples this batch needs."""
        return self.predicted_s / self.published_s - 1

    @property
    def guessed_error(self) -> float:
        """Return the error of the prediction that takes these samples from the ends as well."""
        return self.guessed_s / self.published_s - 1


def read_series(text: str) -> list[Series]:
    """Read the published points; a line that starts with # is a comment."""
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return [_series(key, list(group)) for key, group in groupby(rows, _KEY)]


def errors(series: Iterable[Series]) -> list[Error]:
    """Predict every middle size from its series' ends."""
    predictions = []
    for measured in series:
        small, *middle, large = measured.points
        for point in middle:
            known, guessed = predict(small, large, point)
            predictions.append(Error(measured.name, point.count, point.time_s, known, guessed))
    return predictions


def table(errors: Sequence[Error], reasons: dict[str, str]) -> str:
    """Lay the errors out in Markdown; a series with a reason is one that the law does not fit."""
    lines = [
        "| series | size | published | predicted | error | samples from the ends too |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for error in errors:
        mark = " *" if error.series in reasons else ""
        minutes = f"{error.published_s / 60:.2f} min | {error.predicted_s / 60:.2f} min"
        both = f"{_percent(error.error)} | {_percent(error.guessed_error)}"
        lines.append(f"| {error.series}{mark} | {error.count} | {minutes} | {both} |")
    lines += ["", *(f"\\* {name}: {why}" + "\n" for name, why in reasons.items())]
    return "\n".join(lines).rstrip() + "\n"


def _percent(value: float) -> str:
    return f"{value * 100:+.0f} %"


def _series(key: tuple[str, ...], rows: list[dict[str, str]]) -> Series:
    name = f"{key[0]} {key[1]} {key[2]} {key[3]}"
    known = all(row["batch"] for row in rows)
    points = sorted((_point(row) for row in rows), key=lambda point: point.count)
    return Series(name, tuple(points), known)


def _point(row: dict[str, str]) -> ScalingPoint:
    """Return the point of a row: its epochs are of runs of `took` minutes; the published mean run took its share."""
    time_s = float(row["minutes"]) * 60
    if not row["batch"]:
        return ScalingPoint(int(row["count"]), time_s, 1.0, 1.0)
    samples = float(row["epochs"]) * float(row["minutes"]) / float(row["took"])
    return ScalingPoint(int(row["count"]), time_s, float(row["batch"]), samples)
