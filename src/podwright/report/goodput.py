"""Where the time of a run went: a bar of all of it, a lane for each attempt, a table of hours and money. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podwright.analysis.goodput import TITLES, amount_text, classes_of, interruptions_text, sentences
from podwright.analysis.ranks import Story
from podwright.analysis.statistics import as_number
from podwright.runs.goodput import CLASSES, AttemptLane, Goodput
from podwright.runs.goodput.account import UNITS
from podwright.theme import words

MAX_LANES = 24
BINS = 240
"""Steps of the time axis: a lane shows the shares of the classes in each."""
_HEIGHT = 28


@dataclass(frozen=True)
class TimePiece:
    """A stretch of a drawing, in per cent of its width and pixels of its height."""

    name: str
    left: float
    width: float
    top: float
    height: float
    title: str


@dataclass(frozen=True)
class TimeLane:
    """The time of one attempt."""

    label: str
    note: str
    pieces: tuple[TimePiece, ...]


def goodput_view(story: Story) -> dict[str, Any] | None:
    """Return what the template fills in; None where nothing was allocated yet."""
    data, goodput = story.data, story.data.goodput
    if goodput is None or not goodput.allocated:
        return None
    cost = data.record.cost or {}
    rows = classes_of(goodput, as_number(cost.get("amount")))
    return {
        "sentences": list(sentences(goodput)),
        "figures": _figures(goodput),
        "bar": _bar(goodput),
        "at_risk": _at_risk(goodput),
        "lanes": [_lane(story, lane) for lane in goodput.lanes[-MAX_LANES:]],
        "left_out": max(0, len(goodput.lanes) - MAX_LANES),
        "rows": rows,
        "unit": UNITS[goodput.unit],
        "seconds": goodput.allocated < 3_600_000,
        "currency": cost.get("currency") if any(row.cost is not None for row in rows) else None,
        "total": amount_text(goodput.allocated, goodput.unit),
        "live": not data.record.is_final,
        "straggler": data.straggler.text if data.straggler else None,
    }


def _figures(goodput: Goodput) -> list[tuple[str, str, str]]:
    unit = f"of {amount_text(goodput.allocated, goodput.unit)}"
    figures = [
        ("Goodput", words.percent(goodput.share, 1), unit),
        ("With the queue (ETTR)", words.percent(goodput.ettr, 1), "from the first submission on"),
    ]
    worst = goodput.worst
    if worst is not None:
        took = goodput.classes[worst]
        figures.append(("Largest loss", words.percent(took / goodput.allocated, 1), TITLES[worst]))
    if goodput.interruptions:
        figures.append(("Interruptions", str(goodput.interruptions), interruptions_text(goodput).partition(", ")[2]))
    return figures


def _bar(goodput: Goodput) -> list[TimePiece]:
    """Return all time as one bar, class by class."""
    pieces, left = [], 0.0
    for row in classes_of(goodput, None):
        width = 100 * row.share
        title = f"{row.title}: {words.percent(row.share, 1)}, {_amount(goodput, row.name)}"
        pieces.append(TimePiece(row.name, round(left, 3), round(width, 3), 0, _HEIGHT, title))
        left += width
    return pieces


def _amount(goodput: Goodput, name: str) -> str:
    return amount_text(goodput.classes.get(name, 0), goodput.unit)


def _at_risk(goodput: Goodput) -> TimePiece | None:
    """Return the end of the productive time that no checkpoint holds yet."""
    if not goodput.at_risk:
        return None
    whole = goodput.allocated
    width = 100 * goodput.at_risk / whole
    left = 100 * goodput.classes.get("productive", 0) / whole - width
    title = f"at risk: {amount_text(goodput.at_risk, goodput.unit)} of steps that no checkpoint holds yet"
    return TimePiece("at_risk", round(left, 3), round(width, 3), 0, _HEIGHT, title)


def _lane(story: Story, lane: AttemptLane) -> TimeLane:
    note = f"ended by {lane.closed_by}" if lane.closed_by else ""
    return TimeLane(f"attempt {lane.number}", note, tuple(_pieces(story, lane)))


def _pieces(story: Story, lane: AttemptLane) -> Iterator[TimePiece]:
    """Yield a lane's drawing: neighbours of the same single class are one piece, a mixed stretch stands on itself."""
    if not lane.stretches:
        return
    begin, end = lane.stretches[0].begin, lane.stretches[-1].end
    bins = _binned(lane, max(1, round(story.span.length_s * 1000 / BINS)))
    at = begin
    for width, parts in _merged(bins):
        left = 100 * story.span.share(at / 1000)
        right = 100 * story.span.share(min(at + width, end) / 1000)
        top = 0.0
        whole = sum(parts.values()) or 1
        for name in CLASSES:
            if parts.get(name):
                share = parts[name] / whole
                title = f"{TITLES[name]}, {words.percent(share)} of {words.duration(whole / 1000)}"
                yield TimePiece(
                    name, round(left, 3), round(right - left, 3), round(top, 2), round(_HEIGHT * share, 2), title
                )
                top += _HEIGHT * share
        at += width


def _binned(lane: AttemptLane, width: int) -> list[tuple[int, Counter[str]]]:
    """Return the classes of each bin; a stretch that is longer than a bin stays whole."""
    bins: list[tuple[int, Counter[str]]] = []
    length, parts = 0, Counter[str]()
    for stretch in lane.stretches:
        length += stretch.length
        parts.update(stretch.parts)
        if length >= width:
            bins.append((length, parts))
            length, parts = 0, Counter[str]()
    if length:
        bins.append((length, parts))
    return bins


def _merged(bins: Sequence[tuple[int, Counter[str]]]) -> list[tuple[int, Counter[str]]]:
    merged: list[tuple[int, Counter[str]]] = []
    for length, parts in bins:
        if merged and len(parts) == 1 and merged[-1][1].keys() == parts.keys():
            merged[-1] = (merged[-1][0] + length, merged[-1][1] + parts)
        else:
            merged.append((length, parts))
    return merged
