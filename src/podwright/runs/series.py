"""The series of a run: every value that its ranks told, with the time and the step of each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from podwright.pilot.protocol import (
    KEY_EPOCH,
    KEY_OF,
    KEY_TIME,
    KEY_VALUES,
    Epoch,
    record_folders,
    rows_of,
    series_files,
)
from podwright.runs import fields
from podwright.runs.events import Event, ResultTold
from podwright.runs.parquet import Column, read_rows, write_rows

SERIES_FILE = "series.parquet"
COLUMNS = (
    Column("t", "float64"),
    Column("node", "int32"),
    Column("restart", "int64"),
    Column("retry", "int32"),
    Column("rank", "int32"),
    Column("step", "float64", may_be_none=True),
    Column("epoch", "float64", may_be_none=True),
    Column("of", "int64"),
    Column("name", "string"),
    Column("value", "float64"),
)


class ToldValue(NamedTuple):
    """A value that a rank told, as a row of the Parquet file.

    `step` and `epoch` are what the rank had told last in its attempt, those of the same line among them. `of` is how
    many lines that the rank told this one stands for: more than one where the series is thinned.
    """

    t: float
    node: int
    restart: int
    retry: int
    rank: int
    step: float | None
    epoch: float | None
    of: int
    name: str
    value: float


class _Teller:
    """One rank, with where it stands in its training. Millions of lines come through here: what is usual is quick."""

    def __init__(self, node: int, rank: int) -> None:
        self._node, self._rank = node, rank
        self._written: object = None
        self._attempt: Epoch | None = None
        self._step: float | None = None
        self._epoch: float | None = None

    def read(self, row: Mapping[str, Any]) -> Iterator[ToldValue]:
        """Yield the values of a row of its series; none when it cannot be understood."""
        t, attempt, values = row.get(KEY_TIME), self._attempt_of(row.get(KEY_EPOCH)), row.get(KEY_VALUES)
        if type(t) is not float or not 0.0 <= t <= fields.LATEST_S:
            t = fields.moment(t)
        if t is None or attempt is None or not isinstance(values, dict):
            return iter(())
        return self.values(t, attempt, values, fields.whole(row.get(KEY_OF)) or 1)

    def _attempt_of(self, written: object) -> Epoch | None:
        if self._written is not None and written == self._written:
            return self._attempt
        return fields.epoch(written)

    def values(self, t: float, attempt: Epoch, values: Mapping[str, object], of: int = 1) -> Iterator[ToldValue]:
        """Yield what it told in one line."""
        if attempt != self._attempt:
            self._attempt, self._written = attempt, list(attempt)
            self._step = self._epoch = None
        if "step" in values:
            self._step = _figure(values["step"])
        if "epoch" in values:
            self._epoch = _figure(values["epoch"])
        restart, retry = attempt
        for name, written in values.items():
            value = _figure(written)
            if value is not None:
                place = (t, self._node, restart, retry, self._rank, self._step, self._epoch, of)
                yield ToldValue(*place, _printable(name), value)


def _figure(value: object) -> float | None:
    if type(value) is float and math.isfinite(value):
        return value
    number = fields.number(value)
    if number is None:
        return None
    return float(number)


def _printable(name: str) -> str:
    if name.isascii():
        return name
    return fields.text(name) or ""


def has_lines(record: Path) -> bool:
    """Return whether pilots wrote a series into a record."""
    return any(series_files(path) for _, _, path in record_folders(str(record)))


def of_lines(record: Path) -> Iterator[ToldValue]:
    """Yield what the pilots wrote, rank by rank. A file's name says whose it is: no line can speak for another."""
    for node, _, folder in record_folders(str(record)):
        for rank, path in series_files(folder):
            if fields.node(rank) is None:
                continue
            teller = _Teller(node, rank)
            for row in rows_of(path):
                yield from teller.read(row)


def of_events(events: Iterable[Event]) -> Iterator[ToldValue]:
    """Yield what result events hold: of a run of version 0.1 that is all, of a later one the last of each second."""
    tellers: dict[tuple[int, int], _Teller] = {}
    for event in events:
        if isinstance(event, ResultTold):
            key = (event.node, event.rank)
            teller = tellers.get(key)
            if teller is None:
                teller = tellers[key] = _Teller(*key)
            yield from teller.values(event.time, event.epoch, event.values)


def write_series(path: Path, values: Iterable[ToldValue]) -> None:
    """Write the values as they come; no file where there is none."""
    write_rows(path, COLUMNS, values)


def read_series(path: Path) -> Iterator[ToldValue]:
    """Yield the values of a sealed run; `Unreadable` says in words what is wrong with a damaged file."""
    return map(ToldValue._make, read_rows(path, COLUMNS))
