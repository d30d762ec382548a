"""The time of one attempt, from GO to its end, divided among the classes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from podwright.pilot.protocol import Epoch
from podwright.runs.goodput.attempts import AttemptMoments
from podwright.runs.goodput.classes import TOLD, Stretch, scaled, whole_stretch
from podwright.runs.goodput.tellings import Telling


@dataclass(frozen=True)
class AttemptSpan:
    """An attempt on the run's axis: its moments put in order, `end` of one that goes on being now."""

    epoch: Epoch
    moments: AttemptMoments
    go: int
    ready: int
    end: int
    is_open: bool
    counts_steps: bool
    """Whether any attempt of the run told a step: what comes before the first of them is then known to be a start."""

    @property
    def rows(self) -> list[Telling]:
        """Return what was told while its ranks were there."""
        return [row for row in self.moments.tellings.rows if self.ready <= row.at <= self.end]


def stretches_of(span: AttemptSpan) -> list[Stretch]:
    """Return the attempt's time, piece after piece without a gap."""
    pieces = [whole_stretch(span.go, span.ready, "start")]
    rows = span.rows
    if not rows:
        pieces.append(whole_stretch(span.ready, span.end, "init" if span.counts_steps else "other"))
    else:
        pieces += _told(span, rows)
        pieces += _tail(span, rows[-1].at)
    return [piece for piece in pieces if piece.length]


class _Spending:
    """Puts the time that a program told of into the stretches between its tellings.

    A telling may come late, so that a stretch is told more than it holds: that goes where time before it is not
    explained yet, the nearest first, and what finds no room there goes to the stretches that follow.
    """

    def __init__(self, rest: str) -> None:
        self._rest = rest
        self.stretches: list[Stretch] = []
        self._carried = dict.fromkeys(TOLD, 0)

    def add(self, begin: int, end: int, told: dict[str, int], rest: str | None = None) -> None:
        """Add a stretch, what of it was told, and what the rest of it is."""
        wanted = {name: self._carried[name] + told.get(name, 0) for name in TOLD}
        total, length = sum(wanted.values()), end - begin
        here = wanted if total <= length else scaled(wanted, length)
        self._carried = {name: wanted[name] - here.get(name, 0) for name in TOLD}
        parts = {name: value for name, value in here.items() if value}
        left = length - sum(parts.values())
        if left:
            name = rest or self._rest
            parts[name] = parts.get(name, 0) + left
        self.stretches.append(Stretch(begin, end, parts))
        if total > length:
            self._put_back()

    def _put_back(self) -> None:
        for index in range(len(self.stretches) - 2, -1, -1):
            missing = sum(self._carried.values())
            room = self.stretches[index].parts.get("other", 0)
            if not missing:
                return
            if room:
                self._fill(index, scaled(self._carried, min(room, missing)))

    def _fill(self, index: int, moved: dict[str, int]) -> None:
        parts = dict(self.stretches[index].parts)
        parts["other"] -= sum(moved.values())
        for name, value in moved.items():
            parts[name] = parts.get(name, 0) + value
            self._carried[name] -= value
        self.stretches[index] = self.stretches[index]._replace(parts={name: ms for name, ms in parts.items() if ms})


def _told(span: AttemptSpan, rows: list[Telling]) -> list[Stretch]:
    tellings = span.moments.tellings
    spending = _Spending("other" if tellings.tells_time else "productive")
    first = dict(zip(TOLD, rows[0].spent, strict=True))
    began = rows[0].at
    if not tellings.tells_time:  # it worked for its first telling as long as for any other
        began = max(span.ready, began - tellings.interval)
        spending.add(span.ready, began, {}, rest="init")
        spending.add(began, rows[0].at, first)
    else:
        spending.add(span.ready, began, first, rest="init")
    for before, after in pairwise(rows):
        spent = zip(TOLD, before.spent, after.spent, strict=True)
        spending.add(before.at, after.at, {name: max(0, late - early) for name, early, late in spent})
    return spending.stretches


def _tail(span: AttemptSpan, last: int) -> Iterator[Stretch]:
    """Yield what came after the last telling: nobody told of it, so it is known by how the attempt ended."""
    moments, tellings = span.moments, span.moments.tellings
    evaluates = tellings.evaluates_since
    if moments.succeeded:
        yield whole_stretch(last, span.end, "teardown")
    elif evaluates is not None and evaluates <= span.end:
        began = max(last, evaluates)
        yield whole_stretch(last, began, "other")
        yield whole_stretch(began, span.end, "evaluation")
    elif span.end - last > tellings.hang_after:
        yield whole_stretch(last, span.end, "hang")
    else:
        # A step was at work: it counts in a run that goes on, and is lost with an attempt that ended.
        step = min(span.end, last + tellings.interval)
        yield whole_stretch(last, step, "productive")
        yield whole_stretch(step, span.end, "recovery" if moments.lost_node else "other")
