"""Published results of MLPerf Training from 0.6 on, and where a time of one's own stands beside them.

The files in `data` hold the minutes of every run and the olympic means worked out from them, and of later rounds means
whose runs were not read; `data/README.md` has the source and the licence.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from statistics import median
from typing import Any

from podwright.analysis.comparison import PairComparison, compare
from podwright.mlperf.log import REACHED

NOT_VERIFIED = "not verified by MLCommons"


@dataclass(frozen=True)
class PublishedRun:
    """One log of a submission."""

    file: str
    minutes: float
    reached: bool


@dataclass(frozen=True)
class PublishedResult:
    """One submission of one benchmark: its score, and every run behind it."""

    round: str
    submitter: str
    system: str
    accelerator: str
    chips: int
    framework: str
    benchmark: str
    minutes: float
    source: str
    runs: tuple[PublishedRun, ...]

    @property
    def times(self) -> list[float]:
        """Return the minutes of the runs that reached their target."""
        return [run.minutes for run in self.runs if run.reached]

    @property
    def spread(self) -> tuple[float, float] | None:
        """Return how far its own runs lie from its score, as shares: the fastest and the slowest; None without runs."""
        if not self.times:
            return None
        return min(self.times) / self.minutes - 1, max(self.times) / self.minutes - 1

    @property
    def results_per_chip_hour(self) -> float | None:
        """Return how many trainings an hour of one chip is good for; None where its chips are not counted."""
        return 60 / (self.minutes * self.chips) if self.chips else None

    def as_json(self) -> dict[str, Any]:
        """Return the row of `bench published`."""
        runs = [asdict(run) for run in self.runs]
        row = {name: getattr(self, name) for name in ("round", "submitter", "system", "chips", "benchmark", "minutes")}
        more = {name: getattr(self, name) for name in ("accelerator", "framework", "spread", "results_per_chip_hour")}
        return {**row, "runs": runs, "source": self.source, **more, "note": NOT_VERIFIED}


@dataclass(frozen=True)
class Standing:
    """A time of one's own beside a published result."""

    result: PublishedResult
    minutes: float
    slower: float
    """By which share it is slower; below zero: faster."""
    comparison: PairComparison

    @property
    def is_within_spread(self) -> bool | None:
        """Tell whether one of the published runs was as slow, or as fast; None where these are not known."""
        if self.result.spread is None:
            return None
        low, high = self.result.spread
        return low <= self.slower <= high

    def as_json(self) -> dict[str, Any]:
        """Return it for `bench published --beside`."""
        own = {"minutes": self.minutes, "slower": self.slower, "within_spread": self.is_within_spread}
        return {**self.result.as_json(), "beside": {**own, **self.comparison.as_json()}}


@cache
def published_results() -> tuple[PublishedResult, ...]:
    """Return all results, in the order of the file."""
    runs: dict[tuple[str, ...], list[PublishedRun]] = {}
    for row in _rows("mlperf_published_runs.csv"):
        run = PublishedRun(row["log"], float(row["minutes"]), row["status"] in REACHED)
        runs.setdefault(_key(row), []).append(run)
    return tuple(_result(row, runs.get(_key(row), [])) for row in _rows("mlperf_published.csv"))


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return row["round"], row["submitter"], row["system"], row["benchmark"]


def _rows(name: str) -> Iterator[dict[str, str]]:
    text = (resources.files("podwright.mlperf") / "data" / name).read_text("utf-8")
    yield from csv.DictReader(text.splitlines())


def _result(row: dict[str, str], runs: Sequence[PublishedRun]) -> PublishedResult:
    names = ("round", "submitter", "system", "accelerator", "framework", "benchmark", "source")
    return PublishedResult(
        chips=int(row["count"]), minutes=float(row["minutes"]), runs=tuple(runs), **{name: row[name] for name in names}
    )


def select_results(benchmark: str | None, system: str | None, round_name: str | None) -> list[PublishedResult]:
    """Return the results of a benchmark and a round, whose system has this text in its name."""

    def is_meant(result: PublishedResult) -> bool:
        is_round = round_name in (None, result.round, result.round.removeprefix("v"))
        return is_round and benchmark in (None, result.benchmark) and (system or "").lower() in result.system.lower()

    return list(filter(is_meant, published_results()))


def standing_of(minutes: Sequence[float], result: PublishedResult) -> Standing:
    """Place times of one's own beside a published result; the rule of `compare` says what they prove."""
    own = median(minutes)
    return Standing(result, own, own / result.minutes - 1, compare(result.times, minutes))
