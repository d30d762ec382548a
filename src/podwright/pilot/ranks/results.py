"""What the ranks of a node report: all of it in a file for each rank, the last values of each second as events."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Callable, Collection, Dict, Iterable, List, Optional, Set

from ..protocol import (
    KEY_EPOCH,
    KEY_OF,
    KEY_TIME,
    KEY_VALUES,
    SERIES_BYTES,
    WORKS,
    goal_reached,
    json_line,
    parse_result,
    series_name,
)
from ..system.journal import Journal
from ..system.plain_files import ADDING
from .guesses import LineValues, Recogniser
from .thinning import Row, Thinner, period_at

EVENT_S = 1.0
"""Between two events of a rank: readers hold what a run's events add up to, and look at them often."""
STEPS = ((0.5, 0.0), (0.75, 1.0), (1.0, 60.0))
"""(share of a series' bound used, seconds between two of its lines up to there)"""
WAITING_BYTES = 64 * 1024
MAX_LINE_BYTES = 32 * 1024
MAX_NAMES, MAX_NAME_LETTERS = 1000, 200
MLLOG_NAME = "mllog"


class SeriesFile:
    """All that one rank reported, as lines. Towards its bound lines are added up; each says how many it stands for."""

    def __init__(self, path: str, limit_bytes: int) -> None:
        self._path, self._limit = path, limit_bytes
        self._file: Optional[int] = None
        self._size = 0
        self._waiting: List[bytes] = []
        self._waiting_bytes = 0
        self._is_torn = False
        self._thinner = Thinner()
        self.row_count = self.written_count = 0

    def add(self, row: Row) -> bool:
        """Take a line; return whether lines are further apart from here on."""
        self.row_count += 1
        kept = self._thinner.take(row)
        if kept is not None:
            self._keep(kept)
        before = self._thinner.period_s
        self._thinner.period_s = period_at(self._size / self._limit, STEPS)
        return self._thinner.period_s > before

    @property
    def period_s(self) -> float:
        """Return the seconds between two lines now; 0 when every line is kept."""
        return self._thinner.period_s

    def end_attempt(self) -> None:
        """Keep what is held of an attempt that is over."""
        rest = self._thinner.rest()
        if rest is not None:
            self._keep(rest)
        self.flush()

    def _keep(self, row: Row) -> None:
        data = json_line(row)
        if len(data) > MAX_LINE_BYTES or self._size + len(data) > self._limit:
            return
        self._waiting.append(data)
        self._size += len(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes > WAITING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what waits; a full disk loses lines of a series, never the run, and they are counted."""
        if not self._waiting:
            return
        data, count = b"".join(self._waiting), len(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        try:
            self._open()
            assert self._file is not None
            if self._is_torn:
                data = b"\n" + data
            self._is_torn = os.write(self._file, data) != len(data)
        except OSError:
            return
        if not self._is_torn:
            self.written_count += count

    def _open(self) -> None:
        if self._file is None:
            # What lies in the way is left there: lines of a series may be lost.
            self._file = os.open(self._path, ADDING, 0o600)
            size = os.fstat(self._file).st_size
            self._size += size
            self._is_torn = size > 0

    def close(self) -> None:
        self.end_attempt()
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)


class RankValues:
    """One rank as its lines have it: its series, its names, and what waits for its next event."""

    def __init__(self, folder: str, rank: int, limit_bytes: int) -> None:
        self.series = SeriesFile(os.path.join(folder, series_name(rank)), limit_bytes)
        self.events = Thinner(EVENT_S)
        self.names: Set[str] = set()
        self.is_over_names = False

    def limited(self, values: Dict[str, Any]) -> Dict[str, Any]:
        """Return the values whose names are among the first that the rank reported: readers hold one value for each."""
        if values.keys() <= self.names:
            return values
        for name in values:
            if len(self.names) < MAX_NAMES and len(name) <= MAX_NAME_LETTERS:
                self.names.add(name)
        kept = {name: value for name, value in values.items() if name in self.names}
        self.is_over_names = self.is_over_names or len(kept) < len(values)
        return kept


class Results:
    """Takes what ranks report. MLLOG's lines and the first hit of the goal in an attempt are events at once."""

    def __init__(
        self,
        folder: str,
        goal: Optional[Dict[str, Any]],
        journal: Journal,
        recogniser: Recogniser,
        limit_bytes: int = SERIES_BYTES,
    ) -> None:
        self._folder, self._goal, self._journal, self._limit = folder, goal or {}, journal, limit_bytes
        self._recogniser = recogniser
        self._recognised: Set[str] = set()
        self._ranks: Dict[int, RankValues] = {}
        self._was_hit = False
        self.on_hit: Callable[[float], None] = lambda value: None
        self.on_works: Callable[[Dict[str, Any]], None] = lambda works: None

    def begin_attempt(self) -> None:
        self._was_hit = False

    def hear(self, rank: int, line: bytes) -> Dict[str, Any]:
        """Take what a line of a rank reports, or what is recognised in it; return the values."""
        values = parse_result(line)
        if values:
            self._recogniser.note_reported(rank, values)
            self.take(rank, values)
            return values
        return self._take_read(rank, self._recogniser.read(rank, line))

    def _take_read(self, rank: int, rows: Iterable[LineValues]) -> Dict[str, Any]:
        values: Dict[str, Any] = {}
        for row in rows:
            self._say_recognised(rank, row)
            self.take(rank, row.values, row.guessed, row.age_s)
            values.update(row.values)
        return values

    def _say_recognised(self, rank: int, read: LineValues) -> None:
        """Say once how each name was found."""
        fresh = {name: "form" if name in read.guessed else "pattern" for name in read.values}
        fresh = {name: how for name, how in fresh.items() if name not in self._recognised}
        if fresh and len(self._recognised) < MAX_NAMES:
            self._recognised.update(fresh)
            self._journal.say(
                "recognised", rank=rank, names=[{"name": name, "how": how} for name, how in fresh.items()]
            )

    def take(self, rank: int, values: Dict[str, Any], guessed: Collection[str] = (), age_s: float = 0.0) -> None:
        """Take the values of a line that came `age_s` ago; those that are guessed meet no goal."""
        reported = self._ranks.get(rank)
        if reported is None:
            reported = self._ranks[rank] = RankValues(self._folder, rank, self._limit)
        was_over = reported.is_over_names
        values = reported.limited(values)
        if reported.is_over_names and not was_over:
            self._thinned(rank, f"reports more than {MAX_NAMES} names: the others are left out")
        at = {KEY_TIME: round(self._journal.now() - age_s, 3), KEY_EPOCH: list(self._journal.epoch)}
        numbers = {name: value for name, value in values.items() if name != MLLOG_NAME}
        if numbers and reported.series.add({**at, KEY_VALUES: numbers}):
            period = f"a line every {reported.series.period_s:g} s from here on"
            self._thinned(rank, f"reports more than its series can hold: it has {period}")
        if WORKS[0] in numbers and WORKS[0] not in guessed:
            self.on_works({name: numbers[name] for name in WORKS if name in numbers})
        row, is_hit = {**at, KEY_VALUES: values}, self._hits(numbers, guessed)
        if isinstance(values.get(MLLOG_NAME), str):
            reported.events.forget(values)
            self._say(rank, row)
        elif is_hit:
            self._say(rank, reported.events.give(row))
        elif numbers:
            self._say(rank, reported.events.take(row))

    def _hits(self, values: Dict[str, Any], guessed: Collection[str]) -> bool:
        """Return whether the goal is met for the first time in this attempt; the leader hears of it."""
        metric = self._goal.get("metric", "")
        value = values.get(metric)
        if self._was_hit or value is None or metric in guessed or not goal_reached(self._goal, value):
            return False
        self._was_hit = True
        self.on_hit(value)
        return True

    def _say(self, rank: int, row: Optional[Row]) -> None:
        if row is None:
            return
        count = {KEY_OF: row[KEY_OF]} if KEY_OF in row else {}
        at = {KEY_TIME: row[KEY_TIME], KEY_EPOCH: row[KEY_EPOCH]}
        self._journal.say("result", **at, rank=rank, values=row[KEY_VALUES], **count)

    def _thinned(self, rank: int, text: str) -> None:
        self._journal.say("thinned", what="series", text=f"rank {rank} {text}")

    def tick(self) -> None:
        """Write what waits, and the events that are due; called at every turn of the loop."""
        now = self._journal.now()
        for rank, reported in self._ranks.items():
            reported.series.flush()
            self._say(rank, reported.events.due(now))

    def end(self, rank: int) -> None:
        """Write the last values of a rank that is over."""
        self._take_read(rank, self._recogniser.rest(rank))
        reported = self._ranks.get(rank)
        if reported is not None:
            reported.series.end_attempt()
            self._say(rank, reported.events.rest())

    def close(self) -> None:
        """Close every series, and report how much of one is not in it."""
        for rank, reported in self._ranks.items():
            self.end(rank)
            series = reported.series
            series.close()
            if series.written_count < series.row_count:
                counts = f"{series.row_count} lines, and its series has {series.written_count} of them"
                self._thinned(rank, f"reported {counts}")
