"""Batches of a walk as tables that are only there while a generation is built."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from podwright.data.catalog.files import literal, put_rows
from podwright.data.tree.paths import odd_bytes, shown
from podwright.data.tree.walk import Batch, Numbers, Rows
from podwright.data.tree.walk_folders import FIELDS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation

_ROWS = 2_000_000
"""Rows that are held in memory before they are written: a tree may have a billion."""
_TABLES = ("folder", "file")


class Staging:
    """Takes batches; the connection then has them as `staged_folder` and `staged_file`.

    Few rows stay where they are, and DuckDB reads them there on all cores. More are written to a database of their own.
    """

    def __init__(self, connection: DuckDBPyConnection, path: Path, rows: int = _ROWS) -> None:
        self._connection, self._path, self._most = connection, path, rows
        self._tables: dict[str, list[pa.Table]] = {name: [] for name in _TABLES}
        self._held = self._folders = 0
        self._has_database = False
        self._views: list[str] = []
        self.unread: list[tuple[bytes, str]] = []

    def take(self, batch: Batch) -> None:
        """Take what one worker saw."""
        self.unread += batch.unread
        places = np.arange(self._folders, self._folders + len(batch.folders))
        acls: list[bytes | None] = [None] * len(places)
        for index, entries in batch.acls:
            acls[index] = entries
        self._tables["folder"].append(_table(batch.folders, places, pa.array(acls, pa.binary())))
        of_files = np.repeat(places, batch.counts)
        self._tables["file"].append(_table(batch.files, of_files, pa.nulls(len(of_files), pa.binary())))
        self._folders += len(places)
        self._held += len(of_files) + len(places)
        if self._held >= self._most:
            self.write()

    @property
    def folders(self) -> int:
        """Return how many folders were taken."""
        return self._folders

    def write(self) -> None:
        """Write what is held to the database, which is made by the first call."""
        if not self._has_database:
            self._make_database()
        for name, tables in self._tables.items():
            if tables:
                put_rows(self._connection, f"INSERT INTO staging.staged_{name}", pa.concat_tables(tables))
            tables.clear()
        self._held = 0

    def _make_database(self) -> None:
        self._has_database = True
        self._connection.execute(f"ATTACH '{literal(self._path)}' AS staging")
        types = ", ".join(f"{field} BIGINT" for field in FIELDS)
        for name in _TABLES:
            columns = f"name VARCHAR, raw BLOB, {types}, folder BIGINT, acl BLOB"
            self._connection.execute(f"CREATE TABLE staging.staged_{name} ({columns})")

    def finish(self) -> None:
        """Show all that was taken, and beside it `user_name` and `group_name`: those of whom something is."""
        if self._has_database:
            self.write()
        for name, tables in self._tables.items():
            view = f"staged_{name}"
            self._show(view, pa.concat_tables(tables) if tables else self._connection.table(f"staging.{view}"))
        for column, view, name_of in (("uid", "user_name", _user), ("gid", "group_name", _group)):
            numbers = self._distinct(column)
            names = {"id": pa.array(numbers, pa.int64()), "name": pa.array(map(name_of, numbers), pa.string())}
            self._show(view, pa.table(names))

    def _distinct(self, column: str) -> list[int]:
        if self._has_database:
            query = " UNION ".join(f"SELECT {column} FROM staged_{name}" for name in _TABLES)
            return [number for (number,) in self._connection.execute(query).fetchall()]
        columns = [table[column] for table in chain.from_iterable(self._tables.values())]
        return sorted(set(chain.from_iterable(column.unique().to_pylist() for column in columns)))

    def _show(self, view: str, rows: pa.Table | DuckDBPyRelation) -> None:
        self._connection.register(view, rows)
        self._views.append(view)

    def close(self) -> None:
        """Let go of all that was taken."""
        for view in self._views:
            self._connection.unregister(view)
        for tables in self._tables.values():
            tables.clear()
        if self._has_database:
            self._connection.execute("DETACH staging")
            self._path.unlink()


def _table(rows: Rows, folders: Numbers, acls: pa.Array) -> pa.Table:
    columns: dict[str, Any] = dict(_texts(_names(rows)))
    columns |= {field: pa.array(numbers) for field, numbers in zip(FIELDS, rows.numbers, strict=True)}
    columns["folder"] = pa.array(folders)
    columns["acl"] = acls
    return pa.table(columns)


def _names(rows: Rows) -> pa.Array:
    """Return names end to end, as Arrow has them; the zero bytes between them say where each ends."""
    ends = np.flatnonzero(np.frombuffer(rows.names, np.uint8) == 0)
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    letters = rows.names.replace(b"\0", b"")
    return pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def _texts(names: pa.Array) -> Iterable[tuple[str, pa.Array]]:
    """Yield names as texts, and the bytes of those that are none: hardly ever is there one among thousands."""
    try:
        yield "name", names.cast(pa.string())
        yield "raw", pa.nulls(len(names), pa.binary())
    except pa.ArrowInvalid:
        raw = names.to_pylist()
        yield "name", pa.array(map(shown, raw), pa.string())
        yield "raw", pa.array(map(odd_bytes, raw), pa.binary())


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
