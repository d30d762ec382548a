"""What the counted labels of a dataset hold, as sums over all of them and as a table of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from podwright.data.catalog import schema
from podwright.data.labels.images import OF_UNKNOWN_COLOURS
from podwright.data.tree.paths import as_json, path_bytes
from podwright.files.whole import write_whole
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_NAMED = 100
"""Broken files are counted all, and so many of them are named."""


@dataclass(frozen=True)
class ClassShare:
    """One class over the whole dataset."""

    name: str
    pixels: int
    images: int
    share: float


@dataclass(frozen=True)
class Statistics:
    """What the labels of a dataset hold."""

    dataset: str
    images: int
    broken: int
    unknown: int
    """Pixels whose colour means no class."""
    classes: tuple[ClassShare, ...]
    broken_files: tuple[dict[str, str], ...]
    counted: int
    """How many labels were read just now."""
    unknown_images: int = 0
    """Labels wholly of colours that mean no class: neither good nor broken."""
    unknown_files: tuple[dict[str, str], ...] = ()
    not_read: int = 0
    """Labels that could not be read just now, of which nothing is known: the next time they are read again."""
    not_read_files: tuple[dict[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data stats`."""
        return asdict(self)

    @classmethod
    def of_sums(
        cls, dataset: str, classes: Sequence[str], sums: Sequence[int], broken_files: Iterable[dict[str, str]]
    ) -> Statistics:
        """Make them of sums: labels, broken ones, those of unknown colours, unknown pixels; then two for each class."""
        images, broken, unknown_images, unknown, *values = sums
        named: dict[bool, list[dict[str, str]]] = {True: [], False: []}
        for row in broken_files:
            named[row["why"] == OF_UNKNOWN_COLOURS].append(row)
        total = sum(values[::2]) or 1
        shares = []
        for name, pixels, holding in zip(classes, values[::2], values[1::2], strict=True):
            shares.append(ClassShare(name, pixels, holding, pixels / total))
        counts = (images, broken, unknown, tuple(shares), tuple(named[False]), 0)
        return cls(dataset, *counts, unknown_images, tuple(named[True]))


def statistics(connection: DuckDBPyConnection, dataset: str, classes: Sequence[str]) -> Statistics:
    """Return what the counted labels of an open generation hold."""
    if not classes:
        return Statistics.of_sums(dataset, (), (0, 0, 0, 0), ())
    columns = map(schema.class_column, range(len(classes)))
    sums = ", ".join(f"coalesce(sum({column}), 0)::BIGINT, count_if({column} > 0)" for column in columns)
    query = f"""SELECT count_if(why IS NULL), count(*) FILTER (why <> '{OF_UNKNOWN_COLOURS}'),
        count(*) FILTER (why = '{OF_UNKNOWN_COLOURS}'), coalesce(sum(unknown), 0)::BIGINT, {sums} FROM label"""
    (row,) = connection.execute(query).fetchall()
    return Statistics.of_sums(dataset, classes, row, _broken(connection))


def _broken(connection: DuckDBPyConnection) -> Iterator[dict[str, str]]:
    query = f"""SELECT d.raw, f.raw, d.path, f.name, l.why FROM label l JOIN file f ON f.id = l.file
        JOIN directory d ON d.id = f.dir WHERE l.why IS NOT NULL ORDER BY f.id LIMIT {MAX_NAMED}"""
    for folder_raw, name_raw, folder, name, why in connection.execute(query).fetchall():
        yield {**as_json(folder + name, path_bytes(folder_raw, name_raw, folder, name)), "why": why}


def per_image(connection: DuckDBPyConnection, classes: Sequence[str]) -> pa.Table:
    """Return the table of a row for each label and a column for each class, `path` first."""
    columns = ["d.path || f.name AS path"]
    for index, name in enumerate(classes):
        columns.append(f"l.{schema.class_column(index)} AS {schema.quoted(name)}")
    query = f"""SELECT {", ".join(columns)} FROM label l JOIN file f ON f.id = l.file JOIN directory d ON d.id = f.dir
        WHERE l.why IS NULL ORDER BY f.id"""
    return connection.sql(query).to_arrow_table()


def check_table(path: Path) -> None:
    """Refuse a file that no table can be written to; asked before the hours of work for it."""
    if path.suffix.lower() not in _WRITERS:
        raise refuse("is neither .csv nor .parquet", hint="give it one of these endings", file=str(path))
    if not path.parent.is_dir():
        raise refuse("there is no such folder", hint="make it first", file=str(path.parent))


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as its file's name says: .csv or .parquet."""
    check_table(path)
    sink = pa.BufferOutputStream()
    _WRITERS[path.suffix.lower()](table, sink)
    write_whole(path, sink.getvalue().to_pybytes(), mode=0o644)


def _write_csv(table: pa.Table, sink: pa.BufferOutputStream) -> None:
    from pyarrow import csv

    csv.write_csv(table, sink, csv.WriteOptions(quoting_style="needed"))


def _write_parquet(table: pa.Table, sink: pa.BufferOutputStream) -> None:
    from pyarrow import parquet

    parquet.write_table(table, sink)


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet}
