"""A dataset as readers of ClickHouse see it: the same questions as of a dataset in DuckDB, and the same answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from podwright.clients.clickhouse import READ_ONLY, UNKNOWN_TABLE, Cell, ClickHouse, RowStream, ServerError
from podwright.data.catalog import schema
from podwright.data.catalog.dataset import BASE, MAX_VALUES, Filtered, Match
from podwright.data.clickhouse import dialect as sql
from podwright.data.clickhouse.dialect import name as quoted
from podwright.data.clickhouse.publish import Publication, check_version, publications_of
from podwright.data.labels.images import OF_UNKNOWN_COLOURS
from podwright.data.labels.statistics import MAX_NAMED, Statistics
from podwright.data.query.conditions import Condition
from podwright.data.query.sorting import FileOrder, sorted_by
from podwright.data.query.sql import MAX_ROWS, QueryRows
from podwright.data.selecting.samples import SampleMember
from podwright.data.tree.known_layouts import layout_of
from podwright.data.tree.layouts import Layout
from podwright.data.tree.paths import as_json, path_bytes, shown
from podwright.data.tree.roots import roots_of_meta
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import Refusal, refuse, short

_NUMBER = re.compile(r"U?Int\d+|Float\d+|Decimal.*")
_WRAPPED = re.compile(r"(?:LowCardinality|Nullable)\((.*)\)")
_LEXEME = re.compile(
    r"""'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.)*" | `(?:[^`\\]|\\.)*` | --[^\n]* | /\*.*?\*/ | [A-Za-z_]\w*""",
    re.VERBOSE | re.DOTALL,
)
_BEFORE_TABLES = ("from", "join", "describe", "desc", "table")


class PublishedDataset(Filtered):
    """Reads one generation of a dataset; the one before stays readable when another is published."""

    left_out = 0

    def __init__(self, server: ClickHouse, published: Publication) -> None:
        self.server, self.name, self._table = server, published.dataset, quoted(published.table)
        self._generation = published.generation
        meta = published.meta
        self._view = quoted(f"{published.table}.files")
        self.root: str = meta["root"]
        self.roots = roots_of_meta(meta)
        self.layout: Layout = layout_of(self.name, meta["layout"])
        self.classes: list[str] = meta["classes"]
        self.vocabulary = schema.vocabulary_of(self.name, self.layout, self.classes, meta["pending"], meta["tags"])

    def count_files(self, condition: Condition) -> int:
        """Return how many files a condition chooses."""
        return self.count(condition)[0]

    def count(self, condition: Condition) -> tuple[int, int]:
        """Return how many files a condition chooses, and how many bytes they have."""
        (row,) = self._values(f"SELECT count(), sum(size) FROM {self._table} WHERE {sql.where_of(condition)}")
        return row[0], row[1]

    def facets(self) -> dict[str, dict[str, int]]:
        """Return how many files each value has, of the typed columns that are texts and have few values."""
        facets: dict[str, dict[str, int]] = {}
        for column in self.layout.columns:
            if column.kind != "text":
                continue
            value = quoted(column.name)
            query = f"""SELECT {value}, count() FROM {self._table} WHERE {value} IS NOT NULL
                GROUP BY {value} ORDER BY {value} LIMIT {MAX_VALUES + 1}"""
            counts = {row[0]: row[1] for row in self._values(query)}
            if len(counts) <= MAX_VALUES:
                facets[column.name] = counts
        return facets

    def find(self, condition: Condition, limit: int | None = None, order: FileOrder | None = None) -> Iterator[Match]:
        """Yield the files that a condition chooses, in an order or in that of the dataset."""
        names = [column.name for column in self.layout.columns]
        columns = [*map(quoted, names)]
        first = ""
        if order is not None:
            values = sql.values_of(order)
            first = f"{sorted_by(values, order)}, "
            if order.name not in BASE and order.name not in names:
                names.append(order.name)
                columns.append(values[-1])
        typed = "".join(f", {column}" for column in columns)
        query = f"""SELECT hex(_folder_raw), hex(_name_raw), folder, name, size, _mtime_ns, owner, mode{typed}
            FROM {self._table} WHERE {sql.where_of(condition)} ORDER BY {first}id"""
        if limit is not None:
            query += f" LIMIT {int(limit)}"
        for row in self._values(query):
            raw = _raw(row)
            size, mtime_ns, owner, mode, *values = row[4:]
            path = row[2] + row[3]
            yield Match(path, raw, size, mtime_ns, owner, mode, dict(zip(names, values, strict=True)))

    def statistics(self) -> Statistics:
        """Return what the counted labels hold."""
        if not self.classes:
            message = f"the labels of {self.name} were not counted when it was published"
            raise refuse(message, hint=self.how_to_count)
        columns = [sql.class_name(index) for index in range(len(self.classes))]
        sums = ", ".join(f"sum({column}), countIf({column} > 0)" for column in columns)
        unknown = f"_why = {sql.literal(OF_UNKNOWN_COLOURS)}"
        labels = f"countIf(_why IS NULL), countIf(NOT {unknown}), countIf({unknown}), sum(_unknown)"
        query = f"SELECT {labels}, {sums} FROM {self._table}"
        (row,) = self._values(f"{query} WHERE _counted = 1")
        return Statistics.of_sums(self.name, self.classes, [value or 0 for value in row], self._broken())

    def _broken(self) -> Iterator[dict[str, str]]:
        query = f"""SELECT hex(_folder_raw), hex(_name_raw), folder, name, _why FROM {self._table}
            WHERE _counted = 1 AND _why IS NOT NULL ORDER BY id LIMIT {MAX_NAMED}"""
        for row in self._values(query):
            yield {**as_json(row[2] + row[3], _raw(row)), "why": row[4]}

    def per_image(self) -> pa.Table:
        """Return the table of a row for each label and a column for each class, `path` first."""
        columns = "".join(f", {sql.class_name(index)}" for index in range(len(self.classes)))
        query = f"""SELECT concat(folder, name){columns} FROM {self._table}
            WHERE _counted = 1 AND _why IS NULL ORDER BY id"""
        rows = list(self._values(query))
        arrays = [pa.array([row[0] for row in rows], pa.string())]
        for index in range(len(self.classes)):
            arrays.append(pa.array([row[index + 1] for row in rows], pa.uint64()))
        return pa.table(arrays, names=["path", *self.classes])

    @property
    def origin(self) -> dict[str, Any]:
        """Return which generation it is, and of which catalog."""
        return {"generation": self._generation, "catalog": str(self.server.address)}

    @property
    def how_to_count(self) -> str:
        """Return what counts its labels."""
        return f"podwright data stats {self.name} on the machine that has its files, then scan it again"

    def members(self, condition: Condition, by: str | None) -> Iterator[SampleMember]:
        """Yield the files of samples of which one fits a condition, sample by sample; `by` is a column of groups."""
        key, role = sql.sample_key(self.layout), sql.role_case(self.layout)
        group = f"ifNull(toString({quoted(by)}), '')" if by else "''"
        chosen = f"SELECT {key} FROM {self._table} WHERE {sql.where_of(condition)}"
        query = f"""SELECT hex(_folder_raw), hex(_name_raw), folder, name, {key}, {role}, {group}, id,
                size, _mtime_ns, sha256
            FROM {self._table} WHERE {role} != '' AND {key} != '' AND {key} IN ({chosen}) ORDER BY {key}, id"""
        for row in self._values(query):
            key, role, group, number, size, mtime_ns, sha256 = row[4:]
            yield SampleMember(key, role, group, number, row[2] + row[3], _raw(row), size, mtime_ns, sha256)

    def label_pixels(self) -> tuple[list[int], np.ndarray[Any, Any]]:
        """Return the numbers of counted labels, and a row of pixels for each with a column for each class."""
        if not self.classes:
            return [], np.zeros((0, 0))
        columns = ", ".join(sql.class_name(index) for index in range(len(self.classes)))
        query = f"SELECT id, {columns} FROM {self._table} WHERE _counted = 1 AND _why IS NULL ORDER BY id"
        rows = list(self._values(query))
        pixels = np.array([row[1:] for row in rows], dtype=float).reshape(len(rows), len(self.classes))
        return [row[0] for row in rows], pixels

    def query(self, text: str) -> QueryRows:
        """Answer a query of the user's own, in which `files` is this dataset; the server lets it only read."""
        try:
            answer = self.server.ask(with_table(text, self._view), read_only=True)
            rows = [_plain(answer, row) for row in islice(answer, MAX_ROWS + 1)]
        except ServerError as error:
            raise self._wrong_query(error) from None
        return QueryRows([name for name, _ in answer.columns], rows[:MAX_ROWS], len(rows) > MAX_ROWS)

    def _wrong_query(self, error: ServerError) -> Refusal:
        if error.code == READ_ONLY:
            hint = "a query only reads: no table functions, no settings; `podwright data tag` and a scan write"
            return refuse(f"not allowed here: {error.message}", hint=hint)
        return refuse(
            error.message, hint=f'`podwright data sql {self.name} --catalog POD "describe files"` lists the columns'
        )

    def _values(self, query: str) -> Iterator[list[Any]]:
        answer = self.server.ask(query)
        for row in answer:
            yield _plain(answer, row)


def _raw(row: list[Any]) -> bytes | None:
    """Return a path's bytes where its text does not tell them; the first four values are its parts."""
    folder, name = (None if part is None else bytes.fromhex(part) for part in row[:2])
    return path_bytes(folder, name, row[2], row[3])


def _plain(answer: RowStream, row: list[Cell]) -> list[Any]:
    return [_value(cell, kind) for cell, (_, kind) in zip(row, answer.columns, strict=True)]


def _value(cell: Cell, kind: str) -> Any:
    """Return a value as JSON can say it; what has no kind there is text."""
    if cell is None:
        return None
    while wrapped := _WRAPPED.fullmatch(kind):
        kind = wrapped[1]
    text = shown(cell)
    if _NUMBER.fullmatch(kind):
        return int(text) if "Int" in kind else float(text)
    if kind == "Bool":
        return text == "true"
    if kind.startswith("DateTime"):
        return text.replace(" ", "T")
    return text


def with_table(text: str, table: str) -> str:
    """Return a query with a table in the place of `files`; what stands in quotes and comments is left alone."""
    parts, at, before = [], 0, ""
    for match in _LEXEME.finditer(text):
        lexeme = match[0]
        names_table = before in _BEFORE_TABLES or text[match.end() : match.end() + 1] == "."
        if lexeme.lower() == "files" and names_table:
            parts += [text[at : match.start()], table]
            at = match.end()
        if not lexeme.startswith(("--", "/*")):
            before = lexeme.lower()
    return "".join([*parts, text[at:]])


def published_datasets(server: ClickHouse) -> dict[str, Publication]:
    """Return what is published in a database, by name; a database in which nothing ever was has nothing."""
    try:
        check_version(server)
        return publications_of(server)
    except ServerError as error:
        if error.code == UNKNOWN_TABLE:
            return {}
        raise server.refusal(error) from None


def check_published(server: ClickHouse, name: str) -> Publication:
    """Return what is published of a dataset, or refuse a name that there is not."""
    published = published_datasets(server)
    if name not in published:
        hint = did_you_mean(name, published, "podwright data scan PATH --name DATASET --catalog POD")
        raise refuse(f'{server.address} has no dataset "{short(name)}"', hint=hint)
    return published[name]


@contextmanager
def open_published(server: ClickHouse, name: str) -> Iterator[PublishedDataset]:
    """Open what is published of a dataset; what the server refuses within the block becomes a refusal."""
    published = check_published(server, name)
    if published.meta["format"] != schema.FORMAT:
        raise refuse(f"{name} was published by another version of Podwright", hint="scan it again with --catalog POD")
    try:
        yield PublishedDataset(server, published)
    except ServerError as error:
        raise _refusal(server, name, error) from None


def _refusal(server: ClickHouse, dataset: str, error: ServerError) -> Refusal:
    if error.code == UNKNOWN_TABLE and dataset in error.message:
        return refuse(f"{dataset} was published again meanwhile, twice", hint="ask again", exit_code=1)
    return server.refusal(error)
