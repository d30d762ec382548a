"""How a run ended: one sentence for a person, one exit code for a script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podwright.cli.terminal import figures
from podwright.cli.terminal.progress import goal_text
from podwright.pilot.protocol import goal_reached

if TYPE_CHECKING:
    from podwright.runs import Record

Goal = Mapping[str, Any]

NOTES = ("stack ", "seen ", "hint ")
"""What lines of an explanation begin with that are told under a word of their own."""
UNREACHABLE, FAILED, CANCELLED = 3, 1, 4
CODES = {"succeeded": 0, "failed": FAILED, "lost": FAILED, "cancelled": CANCELLED}
# Of several runs the first of these that one of them has.
_WORST_FIRST = (UNREACHABLE, FAILED, CANCELLED)


def exit_code(states: Iterable[str]) -> int:
    """Return the exit code of one or several runs by their states; a run that has not ended counts as 0."""
    return worst(CODES.get(state, 0) for state in states)


def worst(codes: Iterable[int]) -> int:
    """Return the one code that stands for several: 3, then 1, then 4."""
    present = set(codes)
    return next((code for code in _WORST_FIRST if code in present), 0)


def sentence(record: Record, goal: Goal | None, points: int = 0) -> tuple[str, str]:
    """Return the word and the text that end a run: what was reached and when, what came later, with what trouble."""
    return record.state, _sentence(record, goal, points)


def _sentence(record: Record, goal: Goal | None, points: int) -> str:
    took = figures.duration(record.duration_s)
    if points:
        return f"{points} points in {took}" if record.state == "succeeded" else record.reason
    if record.state == "succeeded":
        return _success(record, goal, took) + _attempts(record)
    if record.state == "cancelled":
        return f"after {took}{_attempts(record)}"
    return record.reason or f"after {took}"


def explanation(record: Record, lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield why a run failed as (word, text): who, its last lines, its log, what the sensors saw, what helps."""
    said = [line for line in lines if not line.startswith(NOTES)] or [sentence(record, None)[1]]
    yield record.state, "\n".join(said)
    rank = re.match(r"rank (\d+) ", said[0])
    option = f" --rank {rank[1]}" if rank else ""
    yield "log", f"podwright logs {record.id}{option}"
    for note in NOTES:
        word = note.rstrip()
        text = "\n".join(line.removeprefix(note) for line in lines if line.startswith(note))
        if text:
            yield word, text


def _success(record: Record, goal: Goal | None, took: str) -> str:
    if not goal:
        results = figures.results(record.results, limit=4)
        return f"{results} in {took}{_train_time(record)}".lstrip()
    metric, wanted = goal["metric"], goal_text(goal)
    if record.time_to_train_s is not None:
        train_time = figures.duration(record.time_to_train_s)
        return f"{_met(record, metric, wanted)}, time to train {train_time}; ended{_at(record, metric)} in {took}"
    last = record.results.get(metric)
    if last is None:
        return f"{metric} was never reported (goal {wanted}), in {took}"
    if goal_reached(goal, last):
        # A value that was told would have met it: this one was guessed from the output, or read from an event file.
        counts = f"meets {wanted} once the program reports it or `results:` names it"
        return f"{metric} {figures.value(last)} was read, not reported: it {counts}, in {took}"
    return f"{metric} {figures.value(last)}, goal {wanted} not reached, in {took}"


def _met(record: Record, metric: str, wanted: str) -> str:
    """Return the value that met the goal; records of version 0.1 do not have it."""
    if record.goal_value is None:
        return f"{metric} {wanted}"
    return f"{metric} {figures.value(record.goal_value)} {wanted}"


def _at(record: Record, metric: str) -> str:
    """Return what the metric came to after the goal was met, if it changed."""
    last = record.results.get(metric)
    if last is None or last == record.goal_value:
        return ""
    return f" at {figures.value(last)}"


def _train_time(record: Record) -> str:
    if record.time_to_train_s is None:
        return ""
    return f" (time to train {figures.duration(record.time_to_train_s)})"


def _attempts(record: Record) -> str:
    if record.attempts <= 1:
        return ""
    return f", {record.attempts} attempts"
