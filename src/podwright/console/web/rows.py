"""A run as a row of a list: what it came to, how far it is, in words. Pure."""

from __future__ import annotations

from typing import Any

from podwright.runs import Record
from podwright.theme import words

LOOKS = {
    "succeeded": "succeeded",
    "failed": "failed",
    "cancelled": "cancelled",
    "lost": "lost",
    "running": "running",
    "starting": "running",
    "pending": "pending",
}
MAX_RESULTS = 3


def look_of(record: Record) -> str:
    """Return which sign and colour a run has: one that missed its goal is a success that does not look like one."""
    if record.state == "succeeded" and record.goal and record.time_to_train_s is None and not record.matrix:
        return "missed"
    return LOOKS[record.state]


def outcome(record: Record) -> str:
    """Return what a run came to, or how far it is, in a few words."""
    if record.state in ("failed", "lost", "pending", "cancelled") and (record.silence or record.reason):
        return record.silence or record.reason
    if record.silence:
        return record.silence
    parts = [how_far(record)] if not record.is_final else []
    names = [name for name in record.results if name not in ("step", "steps", "epoch", "epochs")]
    if record.goal and record.goal.get("metric") in names:
        names = [str(record.goal["metric"]), *(name for name in names if name != record.goal["metric"])]
    parts += [f"{words.metric_name(name)} {words.number(record.results[name])}" for name in names[:MAX_RESULTS]]
    return ", ".join(filter(None, parts)) or record.reason


def how_far(record: Record) -> str:
    """Return `epoch 3 of 6, 2m 10s left`, by the one clock of progress."""
    progress = record.progress or {}
    parts = []
    for unit, total in (("epoch", "epochs"), ("step", "steps")):
        if progress.get(unit) is not None:
            of = f" of {words.number(progress[total])}" if progress.get(total) else ""
            parts.append(f"{unit} {words.number(progress[unit])}{of}")
            break
    if progress.get("eta_s") is not None:
        parts.append(f"{words.duration(progress['eta_s'])} left in the {progress.get('of') or 'run'}")
    return ", ".join(parts)


def share(record: Record) -> float | None:
    """Return how much of it is done, for a bar; None where nobody can know."""
    value: Any = (record.progress or {}).get("share")
    return float(value) if isinstance(value, (int, float)) and not record.is_final else None


def lasted(record: Record, now: float) -> float | None:
    """Return how long it ran, or has run so far."""
    if record.is_final or record.started_at is None:
        return record.duration_s
    return max(0.0, now - record.started_at)
