"""A dataset as its readers see it: the published generation, open, with the names that filters may use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.data import schema
from podwright.data.classes import classes_of
from podwright.data.conditions import Condition, Vocabulary, condition_of
from podwright.data.filters import parse_filter
from podwright.data.layouts import Layout, layouts
from podwright.data.paths import BelowRoot, as_json
from podwright.data.store import Store
from podwright.runs.record import iso
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

META = "CREATE TABLE meta (key VARCHAR, value VARCHAR)"
_MOST_VALUES = 100
"""A column with more values is no facet."""


def meta_of(connection: DuckDBPyConnection, schema_name: str = "") -> dict[str, str]:
    """Return what a generation says of itself."""
    return dict(connection.execute(f"SELECT key, value FROM {schema_name}meta").fetchall())


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
        known = {"size": self.size, "mtime": iso(self.mtime_ns / 1e9), "owner": self.owner, "mode": f"{self.mode:04o}"}
        return {**as_json(self.path, self.raw), **known, **self.values}


class Dataset:
    """Reads one generation of a dataset; it stays readable whatever is published meanwhile."""

    def __init__(self, store: Store, name: str, connection: DuckDBPyConnection) -> None:
        self.store, self.name, self.connection = store, name, connection
        meta = meta_of(connection)
        if meta.get("format") != str(schema.FORMAT):
            hint = f"podwright data scan {meta.get('root', 'PATH')} --name {name}"
            raise refuse(f"{name} was scanned by another version of Podwright", hint=hint)
        self.root = meta["root"]
        self.root_bytes = bytes.fromhex(meta["root_bytes"])
        self.scanned_at = float(meta["scanned_at"])
        self.layout: Layout = _layout(name, meta["layout"])
        rows = connection.execute("SELECT name FROM class ORDER BY place").fetchall()
        self.classes: list[str] = [row[0] for row in rows]
        self.vocabulary: Vocabulary = self._vocabulary()

    def _vocabulary(self) -> Vocabulary:
        tags = [row[0] for row in self.connection.execute("SELECT DISTINCT name FROM tag ORDER BY name").fetchall()]
        pending: Sequence[str] = ()
        if not self.classes:
            pending = [label.name for label in classes_of(self.layout, Path(self.root))]
        return schema.vocabulary_of(self.name, self.layout, self.classes, pending, tags)

    def condition(self, text: str | None) -> Condition:
        """Return what a filter asks for, or refuse it with the place in its text."""
        return condition_of(parse_filter(text) if text is not None else None, self.vocabulary)

    def count(self, condition: Condition) -> tuple[int, int]:
        """Return how many files a condition chooses, and how many bytes they have."""
        query = f"SELECT count(*), coalesce(sum(f.size), 0)::BIGINT FROM {source_of(condition)}"
        row = self.connection.execute(query, list(condition.values)).fetchone()
        files, size_bytes = row or (0, 0)
        return files, size_bytes

    def facets(self) -> dict[str, dict[str, int]]:
        """Return how many files each value has, of the typed columns that are texts and have few values."""
        facets = {}
        for column in self.layout.columns:
            if column.kind != "text":
                continue
            name = schema.quoted(column.name)
            query = f"""SELECT {name}::VARCHAR, count(*) FROM file WHERE {name} IS NOT NULL
                GROUP BY ALL ORDER BY 1 LIMIT {_MOST_VALUES + 1}"""
            rows = self.connection.execute(query).fetchall()
            if len(rows) <= _MOST_VALUES:
                facets[column.name] = dict(rows)
        return facets

    def find(self, condition: Condition, limit: int | None = None) -> Iterator[Match]:
        """Yield the files that a condition chooses, in the order of the dataset."""
        names = [column.name for column in self.layout.columns]
        typed = "".join(f", f.{schema.quoted(name)}" for name in names)
        chosen = f"SELECT f.id FROM {source_of(condition)} ORDER BY f.id"
        if limit is not None:
            chosen += f" LIMIT {int(limit)}"
        query = f"""SELECT d.path || f.name, d.raw, f.raw, d.path, f.name, f.size, f.mtime_ns, f.owner, f.mode{typed}
            FROM ({chosen}) c JOIN file f ON f.id = c.id JOIN directory d ON d.id = f.dir ORDER BY f.id"""
        answer = self.connection.execute(query, list(condition.values))
        while rows := answer.fetchmany(10_000):
            for row in rows:
                raw = path_bytes(*row[1:5])
                size, mtime_ns, owner, mode, *values = row[5:]
                yield Match(row[0], raw, size, mtime_ns, owner, mode, dict(zip(names, values, strict=True)))


def source_of(condition: Condition) -> str:
    """Return what stands behind FROM; the tables that a condition does not ask for are left out."""
    tables = "file f"
    if "d.path" in condition.sql:
        tables += " JOIN directory d ON d.id = f.dir"
    if "l.c" in condition.sql:
        tables += " LEFT JOIN label l ON l.file = f.id"
    return f"{tables} WHERE {condition.sql}"


def path_bytes(folder_raw: bytes | None, name_raw: bytes | None, folder: str, name: str) -> bytes | None:
    """Return a path as bytes where either of its parts is no text, else None."""
    if folder_raw is None and name_raw is None:
        return None
    return (folder_raw or folder.encode()) + (name_raw or name.encode())


def _layout(dataset: str, name: str) -> Layout:
    if name not in layouts():
        message = f"{dataset} has the layout {name}, which no package that is installed has"
        raise refuse(message, hint="install that package again, or scan it with --layout plain")
    return layouts()[name]


@contextmanager
def open_dataset(store: Store, name: str) -> Iterator[Dataset]:
    """Open a dataset for reading."""
    with store.connect(name) as connection:
        yield Dataset(store, name, connection)
