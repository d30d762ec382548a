"""The series of a run: every value that its ranks told, with the time and the step of each."""

from __future__ import annotations

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
    Column("step", "float64"),
    Column("epoch", "float64"),
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


class Line(NamedTuple):
    """What a rank told at one moment."""

    t: float
    attempt: Epoch
    values: Mapping[str, float]
    of: int


class _Teller:
    """One rank, with where it stands in its training."""

    def __init__(self, node: int, rank: int) -> None:
        self._node, self._rank = node, rank
        self._attempt: Epoch | None = None
        self._at: dict[str, float] = {}

    def values(self, line: Line) -> Iterator[ToldValue]:
        """Yield the values of its next line."""
        if line.attempt != self._attempt:
            self._attempt, self._at = line.attempt, {}
        for name in ("step", "epoch"):
            if name in line.values:
                self._at[name] = float(line.values[name])
        step, epoch = self._at.get("step"), self._at.get("epoch")
        place = (line.t, self._node, *line.attempt, self._rank, step, epoch, line.of)
        for name, value in line.values.items():
            yield ToldValue(*place, name, float(value))


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
                line = parse_line_of(row)
                if line is not None:
                    yield from teller.values(line)


def parse_line_of(row: Mapping[str, Any]) -> Line | None:
    """Return the line that a row of a series holds; None when it cannot be understood."""
    t, attempt = fields.moment(row.get(KEY_TIME)), fields.epoch(row.get(KEY_EPOCH))
    values = fields.numbers(row.get(KEY_VALUES))
    if t is None or attempt is None or values is None:
        return None
    return Line(t, attempt, values, fields.whole(row.get(KEY_OF)) or 1)


def of_events(events: Iterable[Event]) -> Iterator[ToldValue]:
    """Yield what result events hold: of a run of version 0.1 that is all, of a later one the last of each second."""
    tellers: dict[tuple[int, int], _Teller] = {}
    for event in events:
        if isinstance(event, ResultTold):
            key = (event.node, event.rank)
            teller = tellers.get(key)
            if teller is None:
                teller = tellers[key] = _Teller(*key)
            yield from teller.values(Line(event.time, event.epoch, event.values, 1))


def write_series(path: Path, values: Iterable[ToldValue]) -> None:
    """Write the values as they come; no file where there is none."""
    write_rows(path, COLUMNS, values)


def read_series(path: Path) -> Iterator[ToldValue]:
    """Yield the values of a sealed run; `Unreadable` says in words what is wrong with a damaged file."""
    for row in read_rows(path, COLUMNS):
        value = _checked(ToldValue(*row))
        if value is not None:
            yield value


def _checked(value: ToldValue) -> ToldValue | None:
    """Return a value whose fields are of their types, None for any other: somebody may have written the file anew."""
    numbers = (value.node, value.rank, value.retry)
    if fields.moment(value.t) is None or None in map(fields.node, numbers) or fields.number(value.value) is None:
        return None
    if fields.whole(value.restart) is None or fields.whole(value.of) is None or fields.text(value.name) is None:
        return None
    return value._replace(step=fields.number(value.step), epoch=fields.number(value.epoch))
