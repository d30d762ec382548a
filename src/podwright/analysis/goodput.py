"""Goodput as people read it: what its classes are called, shares, hours and money. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from podwright.runs.goodput import CLASSES, Goodput
from podwright.runs.goodput.account import UNITS
from podwright.runs.goodput.interruptions import mean_time
from podwright.theme import words

TITLES = {name: name.replace("_", " ") for name in CLASSES} | {
    "start": "start of nodes and ranks",
    "init": "before the first step",
    "data_wait": "waiting for data",
    "checkpoint_save": "writing checkpoints",
    "restore": "reading a checkpoint",
    "compile": "compiling",
    "other": "not explained",
}
HOUR_MS = 3_600_000
_NAMED = 3
"""Classes that a line names, the largest first."""


@dataclass(frozen=True)
class ClassOfTime:
    """One class of a run's time."""

    name: str
    title: str
    share: float
    hours: float
    cost: float | None


def classes_of(goodput: Goodput, cost: float | None) -> list[ClassOfTime]:
    """Return the classes that took any time, in their order, with their part of what the run cost."""
    whole = goodput.allocated
    rows = []
    for name in CLASSES:
        took = goodput.classes.get(name, 0)
        if took:
            money = None if cost is None else cost * took / whole
            rows.append(ClassOfTime(name, TITLES[name], took / whole, took / HOUR_MS, money))
    return rows


def held_text(goodput: Goodput) -> str:
    """Return `12.4 GPU hours`: how much was allocated."""
    return amount_text(goodput.allocated, goodput.unit)


def amount_text(time_ms: int, unit: str) -> str:
    """Return `12.4 GPU hours`, or `31 GPU seconds` of what is less than an hour."""
    if time_ms < HOUR_MS:
        return f"{words.number(time_ms / 1000)} {UNITS[unit]} seconds"
    return f"{words.number(time_ms / HOUR_MS)} {UNITS[unit]} hours"


def sentences(goodput: Goodput) -> Iterator[str]:
    """Yield what there is to say of it, a line each."""
    yield (
        f"{words.percent(goodput.share, 1)} of {held_text(goodput)} productive,"
        f" {words.percent(goodput.ettr, 1)} with the queue (ETTR)"
    )
    rest = sorted(classes_of(goodput, None), key=lambda row: -row.share)
    named = [f"{row.title} {words.percent(row.share, 1)}" for row in rest if row.name != "productive"]
    if named:
        yield ", ".join(named[:_NAMED])
    if goodput.at_risk:
        yield f"{amount_text(goodput.at_risk, goodput.unit)} of steps that no checkpoint holds yet"
    if goodput.interruptions:
        yield interruptions_text(goodput)


def interruptions_text(goodput: Goodput) -> str:
    """Return how often it was interrupted, and the mean time to the next with its interval where that can be said."""
    count = words.count(goodput.interruptions, "interruption")
    mean = mean_time(goodput.running / 1000, goodput.interruptions)
    if mean is None:
        return count
    low, high = mean[1]
    return f"{count}, one in {words.duration(mean[0])} ({words.duration(low)} to {words.duration(high)}, 90 %)"
