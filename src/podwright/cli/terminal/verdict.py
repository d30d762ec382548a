"""How a run ended: one sentence for a person, one exit code for a script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from podwright.cli.terminal import figures
from podwright.cli.terminal.progress import goal_text

UNREACHABLE, FAILED, CANCELLED = 3, 1, 4
CODES = {"succeeded": 0, "failed": FAILED, "lost": FAILED, "cancelled": CANCELLED}
# Of several runs the first of these that one of them has.
_WORST_FIRST = (UNREACHABLE, FAILED, CANCELLED)

FINAL = frozenset(CODES)


def exit_code(states: Iterable[str]) -> int:
    """Return the exit code of one or several runs by their states; a run that has not ended counts as 0."""
    return worst(CODES.get(state, 0) for state in states)


def worst(codes: Iterable[int]) -> int:
    """Return the one code that stands for several: 3, then 1, then 4."""
    present = set(codes)
    return next((code for code in _WORST_FIRST if code in present), 0)


def sentence(record: Mapping[str, Any], goal: Mapping[str, Any] | None) -> tuple[str, str]:
    """Gives the word and the text that end a run: what was reached, how long it took, with what trouble."""
    state = str(record["state"])
    took = figures.duration(record.get("duration_s"))
    attempts = record.get("attempts") or 1
    if points := record.get("points"):
        return state, f"{len(points)} points in {took}" if state == "succeeded" else str(record.get("reason"))
    if state == "succeeded":
        return state, _reached(record, goal) + took + _train_time(record) + _attempts(attempts)
    if state == "cancelled":
        return state, f"after {took}{_attempts(attempts)}"
    return state, str(record.get("reason") or f"after {took}")


def explanation(record: Mapping[str, Any], lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Gives why a run failed as (word, text): who, its last lines, where its log is, what the sensors saw."""
    said = [line for line in lines if not line.startswith("seen ")] or [sentence(record, None)[1]]
    yield str(record["state"]), "\n".join(said)
    rank = re.match(r"rank (\d+) ", said[0])
    yield "log", f"podwright logs {record['id']}" + (f" --rank {rank[1]}" if rank else "")
    if seen := [line.removeprefix("seen ") for line in lines if line.startswith("seen ")]:
        yield "seen", "\n".join(seen)


def _reached(record: Mapping[str, Any], goal: Mapping[str, Any] | None) -> str:
    from podwright.pilot.protocol import goal_reached

    results = record.get("results") or {}
    if not goal:
        shown = figures.results(results, limit=4)
        return f"{shown} in " if shown else "in "
    got = results.get(goal["metric"])
    if got is None:
        return f"{goal['metric']} was never told (goal {goal_text(goal)}), in "
    if record.get("time_to_train_s") is None:
        return f"{goal['metric']} {figures.value(got)}, goal {goal_text(goal)} not reached, in "
    how = f"{goal_text(goal)} in" if goal_reached(goal, got) else "after the goal was reached, in"
    return f"{goal['metric']} {figures.value(got)} {how} "


def _train_time(record: Mapping[str, Any]) -> str:
    seconds = record.get("time_to_train_s")
    return "" if seconds is None else f" (time to train {figures.duration(seconds)})"


def _attempts(count: int) -> str:
    return f", {count} attempts" if count > 1 else ""
