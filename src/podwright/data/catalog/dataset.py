"""A dataset as its readers see it: the published generation, open, with the names that filters may use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from podwright.data.catalog import schema
from podwright.data.catalog.files import CatalogFile, Opened, meta_of
from podwright.data.catalog.store import Store, damaged
from podwright.data.labels.classes import classes_of
from podwright.data.labels.statistics import Statistics, per_image, statistics
from podwright.data.query.bitmaps import bitmap_of, runs_of
from podwright.data.query.conditions import NEGATED_AS_IN_0_2, Condition, condition_of
from podwright.data.query.lookup import WORTH, BrokenIndex, Lookup
from podwright.data.query.sorting import FileOrder, order_of, sorted_by, values_of
from podwright.data.query.sql import QueryRows, query
from podwright.data.selecting.samples import SampleMember, role_case, sample_key
from podwright.data.tree.known_layouts import layout_of
from podwright.data.tree.layouts import Layout
from podwright.data.tree.paths import BelowRoot, as_json, path_bytes
from podwright.data.tree.roots import roots_of_meta
from podwright.runs.record import iso
from podwright.spec.filter_fields import Vocabulary
from podwright.spec.filters import parse_filter
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection
    from pyroaring import BitMap

MAX_VALUES = 100
"""A column with more values is no facet."""


@dataclass(frozen=True, slots=True)
class Match(BelowRoot):
    """A file that a filter chose; `values` are its typed columns."""

    size: int
    mtime_ns: int
    owner: str
    mode: int
    values: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Return the file as `data find` has it."""
        facts = {"size": self.size, "mtime": iso(self.mtime_ns / 1e9), "owner": self.owner, "mode": f"{self.mode:04o}"}
        return {**as_json(self.path, self.raw), **facts, **self.values}


def _match(row: tuple[Any, ...], known: dict[str, Any]) -> Match:
    size, mtime_ns, owner, mode = row[5:9]
    if None in (row[0], size, mtime_ns, owner, mode):
        raise BrokenIndex("a file has no path, size, time, owner or mode")
    return Match(row[0], path_bytes(*row[1:5]), size, mtime_ns, owner, mode, known)


class Filtered:
    """What filters choose from."""

    vocabulary: Vocabulary

    def condition(self, text: str | None) -> Condition:
        """Return what a filter asks for, or refuse it with the place in its text."""
        return condition_of(parse_filter(text) if text is not None else None, self.vocabulary)

    def order(self, text: str | None) -> FileOrder | None:
        """Return the order that a text asks for; None is that of the dataset."""
        return order_of(text, self.vocabulary) if text is not None else None


class Dataset(Filtered):
    """Reads one generation of a dataset; it stays readable whatever is published meanwhile."""

    def __init__(self, store: Store, name: str, opened: Opened) -> None:
        self.store, self.name, self.connection = store, name, opened.connection
        self.left_out = opened.left_out
        connection = self.connection
        meta = meta_of(connection)
        if meta.get("format") != str(schema.FORMAT):
            hint = f"podwright data scan {meta.get('root', 'PATH')} --name {name}"
            raise refuse(f"{name} was scanned by another version of Podwright", hint=hint)
        self.root = meta["root"]
        self.roots = roots_of_meta(meta)
        self.scanned_at = float(meta["scanned_at"])
        self.layout: Layout = layout_of(name, meta["layout"])
        rows = connection.execute("SELECT DISTINCT place, name FROM class ORDER BY place").fetchall()
        self.classes: list[str] = [row[1] for row in rows]
        self._parts = [_Part(connection, part) for part in opened.parts]
        self.vocabulary = self._vocabulary()

    def _vocabulary(self) -> Vocabulary:
        tags = [row[0] for row in self.connection.execute("SELECT DISTINCT name FROM tag ORDER BY name").fetchall()]
        pending: Sequence[str] = ()
        if not self.classes:
            pending = [label.name for label in classes_of(self.layout, Path(self.root))]
        return schema.vocabulary_of(self.name, self.layout, self.classes, pending, tags)

    def count_files(self, condition: Condition) -> int:
        """Return how many files a condition chooses."""
        return sum(part.count(condition) for part in self._parts)

    def count_as_in_0_2(self, text: str) -> int:
        """Return how many files a filter chose before `not` and `!=` fitted files without a value; no index knows."""
        condition = condition_of(parse_filter(text), self.vocabulary, NEGATED_AS_IN_0_2)
        query = f"SELECT count(*) FROM {source_of(condition)}"
        return int(self.connection.execute(query, list(condition.values)).fetchall()[0][0])

    def count(self, condition: Condition) -> tuple[int, int]:
        """Return how many files a condition chooses, and how many bytes they have."""
        sums = [part.sums(condition) for part in self._parts]
        return sum(files for files, _ in sums), sum(size_bytes for _, size_bytes in sums)

    def facets(self) -> dict[str, dict[str, int]]:
        """Return how many files each value has, of the typed columns that are texts and have few values."""
        facets: dict[str, dict[str, int]] = {}
        for column in self.layout.columns:
            counts: Counter[str] = Counter()
            for part in self._parts:
                counts.update(part.lookup.facet(column.name))
            if column.kind == "text" and len(counts) <= MAX_VALUES:
                facets[column.name] = dict(sorted(counts.items()))
        return facets

    def find(self, condition: Condition, limit: int | None = None, order: FileOrder | None = None) -> Iterator[Match]:
        """Yield the files that a condition chooses, in an order or in that of the dataset."""
        names = [column.name for column in self.layout.columns]
        if order is not None:
            yield from self._sorted(condition, limit, order, names)
            return
        for part in self._parts:
            count = 0
            for row in part.find(condition, names, limit):
                count += 1
                yield _match(row, dict(zip(names, row[9:], strict=True)))
            if limit is not None:
                limit -= count

    def _sorted(
        self, condition: Condition, limit: int | None, order: FileOrder, names: Sequence[str]
    ) -> Iterator[Match]:
        """Yield files with the value that they are sorted by among their own, unless each file has it."""
        values = values_of(order)
        asked = Condition(f"{condition.sql} AND {' AND '.join(values)}")  # only for which tables are asked for
        query = f"""SELECT d.path || f.name, d.raw, f.raw, d.path, f.name, f.size, f.mtime_ns, f.owner, f.mode
            {"".join(f", f.{schema.quoted(name)}" for name in names)}, {values[-1]}
            FROM {tables_of(asked, with_folders=True)} WHERE {condition.sql}
            ORDER BY {sorted_by(values, order)}, f.id"""
        if limit is not None:
            query += f" LIMIT {int(limit)}"
        answer = self.connection.execute(query, list(condition.values))
        while fetched := answer.fetchmany(10_000):
            for row in fetched:
                *typed, value = row[9:]
                known = dict(zip(names, typed, strict=True))
                if order.name not in BASE:
                    known[order.name] = value
                yield _match(row, known)

    def statistics(self) -> Statistics:
        """Return what the counted labels hold."""
        return statistics(self.connection, self.name, self.classes)

    def per_image(self) -> pa.Table:
        """Return the table of a row for each label and a column for each class, `path` first."""
        return per_image(self.connection, self.classes)

    def query(self, text: str) -> QueryRows:
        """Answer a query of the user's own, which only reads this dataset."""
        self.connection.execute(schema.whole_view(self.layout, self.classes))
        return query(self.connection, self.name, text)

    @property
    def origin(self) -> dict[str, Any]:
        """Return which generation it is."""
        return {"generation": self.store.generation(self.name)}

    @property
    def how_to_count(self) -> str:
        """Return what counts its labels."""
        return f"podwright data stats {self.name}"

    def members(self, condition: Condition, by: str | None) -> Iterator[SampleMember]:
        """Yield the files of samples of which one fits a condition, sample by sample; `by` is a column of groups."""
        key, role = sample_key(self.layout), role_case(self.layout)
        group = f"coalesce(f.{schema.quoted(by)}::VARCHAR, '')" if by else "''"
        query = f"""
            WITH member AS (SELECT {key} AS key, {role} AS role, f.* FROM file f),
                 chosen AS (SELECT DISTINCT {key} AS key FROM {source_of(condition)})
            SELECT f.key, f.role, {group}, f.id, d.raw, f.raw, d.path, f.name, f.size, f.mtime_ns, f.sha256
            FROM member f JOIN chosen USING (key) JOIN directory d ON d.id = f.dir
            WHERE f.role IS NOT NULL ORDER BY f.key, f.id"""
        for row in self.connection.execute(query, list(condition.values)).fetchall():
            key, role, group, number, folder_raw, name_raw, folder, name, size, mtime_ns, sha256 = row
            raw = path_bytes(folder_raw, name_raw, folder, name)
            yield SampleMember(key, role, group, number, folder + name, raw, size, mtime_ns, sha256)

    def label_pixels(self) -> tuple[list[int], np.ndarray[Any, Any]]:
        """Return the numbers of counted labels, and a row of pixels for each with a column for each class."""
        if not self.classes:
            return [], np.zeros((0, 0))
        columns = [schema.class_column(index) for index in range(len(self.classes))]
        query = f"SELECT file, {', '.join(columns)} FROM label WHERE why IS NULL"
        table = self.connection.execute(query).fetchnumpy()
        pixels = np.stack([np.asarray(table[column], dtype=float) for column in columns], axis=1)
        return table["file"].tolist(), pixels


BASE = ("path", "size", "mtime", "owner", "mode")
"""What every listed file has."""
_MAX_IDS = 100_000
"""Rows are fetched by their places up to so many; beyond that reading all is as fast."""


class _Part:
    """One file of a generation: asks its indexes first, and SQL for what they leave open."""

    def __init__(self, connection: DuckDBPyConnection, part: CatalogFile) -> None:
        self._connection, self._part = connection, part
        self.lookup = Lookup(connection, part.alias, part.rows)
        self._folders: dict[int, tuple[bytes | None, str]] = {}
        self._looked: tuple[Condition, BitMap] | None = None

    def _chosen(self, condition: Condition) -> BitMap | None:
        """Return the rows that fit, where indexes tell them or leave few to look at."""
        candidates = self.lookup.candidates(condition)
        if candidates is None:
            return None
        if candidates.exact:
            return candidates.rows
        if len(candidates.rows) * WORTH > self._part.rows:
            return None
        # What a list of files was made of is counted next.
        if self._looked is None or self._looked[0] != condition:
            self._looked = condition, self._look_at(candidates.rows, condition)
        return self._looked[1]

    def _look_at(self, rows: BitMap, condition: Condition) -> BitMap:
        """Return those of some rows that fit."""
        query = f"SELECT f.rowid AS row FROM {self._source(condition)} WHERE {_BY_ROW} AND ({condition.sql})"
        answer = self._connection.execute(query, [*_places(rows), *condition.values]).fetchnumpy()
        return bitmap_of(np.sort(answer["row"]).astype(np.uint32))

    def count(self, condition: Condition) -> int:
        rows = self._chosen(condition)
        return self.sums(condition)[0] if rows is None else len(rows)

    def sums(self, condition: Condition) -> tuple[int, int]:
        rows = self._chosen(condition)
        source, where, values = self._source(condition), condition.sql, list(condition.values)
        if rows is not None and len(rows) <= _MAX_IDS:
            source, where, values = f"{self._part.alias}.file f", _BY_ROW, _places(rows)
        query = f"SELECT count(*), coalesce(sum(f.size), 0)::BIGINT FROM {source} WHERE {where}"
        files, size_bytes = self._connection.execute(query, values).fetchone() or (0, 0)
        return files, size_bytes

    def _source(self, condition: Condition) -> str:
        return tables_of(condition, f"{self._part.alias}.")

    def find(self, condition: Condition, names: Sequence[str], limit: int | None) -> Iterator[tuple[Any, ...]]:
        rows = self._chosen(condition)
        if rows is not None and len(rows[:limit]) <= _MAX_IDS:
            yield from self._by_row(rows[:limit], names)
            return
        chosen = f"SELECT f.id FROM {self._source(condition)} WHERE {condition.sql} ORDER BY f.id"
        if limit is not None:
            chosen += f" LIMIT {int(limit)}"
        query = f"{self._columns(names)} WHERE f.id IN ({chosen}) ORDER BY f.id"
        answer = self._connection.execute(query, list(condition.values))
        while fetched := answer.fetchmany(10_000):
            yield from fetched

    def _by_row(self, rows: BitMap, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        if len(rows) > max(_FEW, self._part.rows // _ROWS_PER_PLACE):
            query = f"{self._columns(names)} WHERE {_BY_ROW} ORDER BY f.id"
            yield from self._connection.execute(query, _places(rows)).fetchall()
            return
        # A row by its place needs no plan over the whole table, and its folder no join.
        typed = "".join(f", {schema.quoted(name)}" for name in names)
        columns = f"SELECT dir, raw, name, size, mtime_ns, owner, mode{typed} FROM {self._part.alias}.file"
        for row in rows:
            (fetched,) = self._connection.execute(f"{columns} WHERE rowid = {row}").fetchall()
            number, raw, name, *values = fetched
            folder_raw, folder = self._folder(number)
            yield folder + name, folder_raw, raw, folder, name, *values

    def _folder(self, number: int) -> tuple[bytes | None, str]:
        if number not in self._folders:
            query = f"SELECT raw, path FROM {self._part.alias}.directory WHERE id = {int(number)}"
            (self._folders[number],) = self._connection.execute(query).fetchall()
        return self._folders[number]

    def _columns(self, names: Sequence[str]) -> str:
        typed = "".join(f", f.{schema.quoted(name)}" for name in names)
        return f"""SELECT d.path || f.name, d.raw, f.raw, d.path, f.name, f.size, f.mtime_ns, f.owner, f.mode{typed}
            FROM {self._part.alias}.file f JOIN {self._part.alias}.directory d ON d.id = f.dir"""


_FEW = 4
_ROWS_PER_PLACE = 500_000
"""A row by its place takes about as long as a plan over so many."""
_BY_ROW = """f.rowid IN (SELECT unnest(range(first, beyond))
    FROM (SELECT unnest(?::BIGINT[]) AS first, unnest(?::BIGINT[]) AS beyond))"""


def _places(rows: BitMap) -> list[object]:
    """Return the values of `_BY_ROW`: where rows that follow each other begin and end, a much shorter list."""
    return [places.tolist() for places in runs_of(rows)]


def source_of(condition: Condition) -> str:
    """Return what stands behind FROM; the tables that a condition does not ask for are left out."""
    return f"{tables_of(condition)} WHERE {condition.sql}"


def tables_of(condition: Condition, schema_name: str = "", with_folders: bool = False) -> str:
    """Return the tables that a condition asks for."""
    tables = f"{schema_name}file f"
    if with_folders or "d.path" in condition.sql:
        tables += f" JOIN {schema_name}directory d ON d.id = f.dir"
    if "l.c" in condition.sql:
        tables += f" LEFT JOIN {schema_name}label l ON l.file = f.id"
    return tables


@contextmanager
def open_dataset(store: Store, name: str) -> Iterator[Dataset]:
    """Open a dataset for reading."""
    import duckdb

    with store.connect(name) as opened:
        try:
            dataset = Dataset(store, name, opened)
        except (duckdb.Error, KeyError, ValueError) as error:
            raise damaged(name, error) from None
        try:
            yield dataset
        except (duckdb.Error, BrokenIndex) as error:
            raise damaged(name, error) from None
