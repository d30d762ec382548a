"""The logs of MLPerf Training, of round 0.6 (`:::MLL`, seconds) and later (`:::MLLOG`, milliseconds), and their score.

The score of a set of runs is its olympic mean: the best and the worst are dropped, the others averaged. A run that did
not reach its target counts as the worst. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from podwright.analysis.statistics import as_number

MIN_RUNS = 3
"""Of fewer, nothing is left when the best and the worst are dropped."""
REACHED = frozenset({"success", "", "eval_result"})
"""What `status` of run_stop says of a run that reached its target; some submitters left it out."""
_LINE = re.compile(r":::MLL(?P<late>OG)?\s+(?:(?P<seconds>\d+(?:\.\d+)?)\s+(?P<key>\w+):\s*)?(?P<json>\{.*\})\s*$")


@dataclass(frozen=True)
class LogEntry:
    """One line of a log; the time in seconds, whatever the round wrote."""

    time_s: float
    key: str
    value: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoredRun:
    """One run: how long it took, whether it reached its target, and where the time went; None where not logged."""

    minutes: float | None
    reached: bool
    benchmark: str = ""
    init_minutes: float | None = None
    eval_minutes: float | None = None
    epochs: int | None = None

    @property
    def train_minutes(self) -> float | None:
        """Return the time of training alone."""
        if self.minutes is None:
            return None
        return self.minutes - (self.eval_minutes or 0.0)

    @property
    def minutes_per_epoch(self) -> float | None:
        """Return the speed apart from how many epochs the run happened to need."""
        if self.minutes is None or not self.epochs:
            return None
        return self.minutes / self.epochs


def entries_of(lines: Iterable[str]) -> Iterator[LogEntry]:
    """Yield the entries of a log; whatever stands before the mark on a line, and all other lines, are passed over."""
    for line in lines:
        mark = line.find(":::MLL")
        match = _LINE.match(line[mark:]) if mark >= 0 else None
        entry = _entry(match) if match else None
        if entry is not None:
            yield entry


def _entry(match: re.Match[str]) -> LogEntry | None:
    try:
        row = json.loads(match["json"])
    except (ValueError, RecursionError):
        return None
    if match["late"]:
        time_ms = as_number(row.get("time_ms"))
        time_s, key = (None if time_ms is None else time_ms / 1000), row.get("key")
    else:
        time_s, key = as_number(_float(match["seconds"])), match["key"]
    if time_s is None or not isinstance(key, str):
        return None
    metadata = row.get("metadata")
    return LogEntry(time_s, key, row.get("value"), metadata if isinstance(metadata, dict) else {})


def _float(text: str | None) -> float | None:
    return float(text) if text else None


def score_run(entries: Iterable[LogEntry]) -> ScoredRun:
    """Return what a log says of its run; one without an end did not reach its target."""
    listed = list(entries)
    by_key: dict[str, list[LogEntry]] = {}
    for entry in listed:
        by_key.setdefault(entry.key, []).append(entry)
    keys = ("run_start", "run_stop", "init_start", "submission_benchmark")
    starts, stops, inits, names = (by_key.get(key, []) for key in keys)
    minutes, reached, init = None, False, None
    if starts and stops:
        minutes = (stops[-1].time_s - starts[0].time_s) / 60
        reached = str(stops[-1].metadata.get("status") or "") in REACHED
    if starts and inits:
        init = (starts[0].time_s - inits[0].time_s) / 60
    return ScoredRun(
        minutes=minutes,
        reached=reached,
        benchmark=str(names[0].value) if names else "",
        init_minutes=init,
        eval_minutes=_minutes_within(listed, "eval_start", "eval_stop"),
        epochs=_epochs(by_key),
    )


def _minutes_within(entries: Iterable[LogEntry], start: str, stop: str) -> float | None:
    """Return the time between starts and stops; one that never stopped counts for nothing."""
    total, began, seen = 0.0, None, False
    for entry in entries:
        if entry.key == start and began is None:
            began = entry.time_s
        elif entry.key == stop and began is not None:
            total, began, seen = total + entry.time_s - began, None, True
    if not seen:
        return None
    return total / 60


def _epochs(by_key: Mapping[str, Sequence[LogEntry]]) -> int | None:
    """Return how many epochs were trained: counted, or as the blocks of several epochs say."""
    counted = len(by_key.get("epoch_stop", []))
    if counted:
        return counted
    blocks = [as_number(entry.metadata.get("epoch_count")) for entry in by_key.get("block_start", [])]
    total = sum(int(count) for count in blocks if count is not None)
    return total or None


def olympic_minutes(runs: Sequence[tuple[float | None, bool]]) -> float | None:
    """Return the olympic mean of (minutes, reached); None of too few runs, or where two did not reach their target."""
    ordered = sorted(minutes for minutes, reached in runs if reached and minutes is not None)
    missed = len(runs) - len(ordered)
    if len(runs) < MIN_RUNS or missed > 1:
        return None
    # A run that missed its target is the worst, so that it is the one to be dropped.
    counted = ordered[1:] if missed else ordered[1:-1]
    return fmean(counted)
