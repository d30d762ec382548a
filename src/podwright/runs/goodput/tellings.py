"""What the ranks of one attempt told of their steps and of their time: bounded, whatever they told. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from podwright.runs.events import ResultTold
from podwright.runs.goodput.classes import TOLD, TOLD_AS, milliseconds

MAX_ROWS = 4_096
"""When there are more, every second one goes: the seconds that were told grow, so none is lost by it."""
RECENT_ROWS = 65
HANG_INTERVALS, HANG_AT_LEAST_MS = 5, 60_000
STEP_PARTS = {
    "input_s": "data_wait",
    "checkpoint_s": "checkpoint_save",
    "compile_s": "compile",
    "evaluation_s": "evaluation",
}
"""What programs tell of a mean step since the telling before, when they tell no sums."""
_SPENT_KEYS, _PART_KEYS = TOLD_AS.keys(), STEP_PARTS.keys()
EVALUATION = {"eval_start": True, "eval_stop": False}
"""MLLOG's keys."""

Place = tuple[float, float, float]
"""How far a program is, so that two of its tellings compare: epoch, how often steps began anew, step."""


class Telling(NamedTuple):
    """A moment, how far the program was, and the milliseconds of each class of `TOLD` since it began."""

    at: int
    place: Place
    spent: tuple[int, ...]


class Tellings:
    """Takes what the lowest rank that counts steps or epochs told in one attempt."""

    def __init__(self) -> None:
        self._rank: int | None = None
        self.rows: list[Telling] = []
        self._clear()

    def _clear(self) -> None:
        self.rows.clear()
        self._recent: deque[int] = deque(maxlen=RECENT_ROWS)
        self._spent = dict.fromkeys(TOLD, 0)
        self._epoch = self._step = 0.0
        self._turns = 0
        self._evaluates_since: int | None = None
        self._declares = False
        self._every, self._skipped = 1, 0
        self.tells_time = False
        """Whether the program says itself how much of its time was productive."""

    @property
    def begins_anew(self) -> bool:
        """Return whether its steps are those of an epoch that it does not name: attempts cannot be compared by them."""
        return self._turns > 0

    @property
    def hang_after(self) -> int:
        """Return for how long nothing may be told before it counts as a hang: five tellings, and a minute."""
        return max(HANG_INTERVALS * self.interval, HANG_AT_LEAST_MS)

    @property
    def interval(self) -> int:
        """Return the usual time between two tellings; 0 before there are two."""
        gaps = [after - before for before, after in pairwise(self._recent)]
        return round(median(gaps)) if gaps else 0

    @property
    def evaluates_since(self) -> int | None:
        """Return since when an evaluation goes on that was begun and not ended."""
        return self._evaluates_since

    def take(self, event: ResultTold) -> None:
        """Take what a rank told in one event."""
        rank, values = event.rank, event.values
        at = milliseconds(event.time)
        if event.mllog in EVALUATION and rank == (self._rank or 0):
            self._note_evaluation(at, EVALUATION[event.mllog])
        spent = _SPENT_KEYS & values.keys()
        if "step" not in values and "epoch" not in values and not spent:
            return
        if self._rank is not None and rank > self._rank:
            return
        if self._rank is not None and rank < self._rank:
            self._clear()
        self._rank = rank
        steps = self._advance(values)
        if spent:
            self._note_spent({TOLD_AS[key]: values[key] for key in spent})
        elif not self.tells_time:
            self._note_parts(values, steps)
        self._add(Telling(at, (self._epoch, self._turns, self._step), tuple(self._spent.values())))

    def _note_evaluation(self, at: int, begins: bool) -> None:
        self._declares = True
        if begins:
            self._evaluates_since = at
        elif self._evaluates_since is not None:
            if not self.tells_time:
                self._spent["evaluation"] += max(0, at - self._evaluates_since)
            self._evaluates_since = None

    def _advance(self, values: Mapping[str, float]) -> float:
        """Take how far the program is; return by how many steps it went on."""
        epoch, step = values.get("epoch", self._epoch), values.get("step", self._step)
        steps = step - self._step
        if steps < 0 and epoch <= self._epoch:
            self._turns += 1
        self._epoch, self._step = epoch, step
        if not self.rows:  # a training that goes on begins with a step of its own, wherever it counts from
            return 1.0
        return steps if steps >= 0 else step

    def _note_spent(self, told: Mapping[str, float]) -> None:
        if not self.tells_time:
            self._spent = dict.fromkeys(TOLD, 0)
        self.tells_time = True
        for name, seconds in told.items():
            self._spent[name] = milliseconds(max(0.0, seconds))

    def _note_parts(self, values: Mapping[str, float], steps: float) -> None:
        for key in _PART_KEYS & values.keys():
            name = STEP_PARTS[key]
            if name != "evaluation" or not self._declares:
                self._spent[name] += milliseconds(max(0.0, values[key] * steps))

    def _add(self, row: Telling) -> None:
        rows = self.rows
        if rows and (row.at < rows[-1].at or row[1:] == rows[-1][1:]):
            return
        self._recent.append(row.at)
        # The newest row always stands last; one that is one too many gives its place to the next.
        if len(rows) > 1 and self._skipped < self._every - 1:
            rows[-1] = row
            self._skipped += 1
            return
        self._skipped = 0
        rows.append(row)
        if len(rows) > MAX_ROWS:
            rows[1:-1] = rows[2:-1:2]
            self._every *= 2
