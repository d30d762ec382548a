"""The logs of MLPerf Training, of round 0.6 (`:::MLL`, seconds) and later (`:::MLLOG`, milliseconds), and their score.

The score of a set of runs is its olympic mean: the best and the worst are dropped, the others averaged. A run that did
not reach its target counts as the worst. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from podwright.analysis.statistics import as_number

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
    line: int = 0


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
    for number, line in enumerate(lines, start=1):
        mark = line.find(":::MLL")
        match = _LINE.match(line[mark:]) if mark >= 0 else None
        entry = _entry(match) if match else None
        if entry is not None:
            yield replace(entry, line=number)


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
        # As the summary of results has it: the first stop, and the last start before it.
        began = [start for start in starts if start.line <= stops[0].line] or starts
        minutes = (stops[0].time_s - began[-1].time_s) / 60
        reached = str(stops[0].metadata.get("status") or "") in REACHED
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
    stops = by_key.get("epoch_stop", [])
    if stops:
        # Two ranks that both log tell each epoch twice.
        return len({str(entry.metadata.get("epoch_num", entry.line)) for entry in stops})
    blocks = [as_number(entry.metadata.get("epoch_count")) for entry in by_key.get("block_start", [])]
    total = sum(int(count) for count in blocks if count is not None)
    return total or None


def olympic_minutes(runs: Sequence[tuple[float | None, bool]], dropped: int = 1) -> float | None:
    """Return the olympic mean of (minutes, reached) but for so many at each end; None where more missed the target."""
    ordered = sorted(minutes for minutes, reached in runs if reached and minutes is not None)
    missed = len(runs) - len(ordered)
    if len(runs) <= 2 * dropped or missed > dropped:
        return None
    # Runs that missed their target are the worst, so that they are the ones to be dropped.
    return fmean(ordered[dropped : len(ordered) - (dropped - missed)])
