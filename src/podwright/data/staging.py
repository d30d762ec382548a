"""Batches of a walk as tables of a database that is only there while a generation is built."""

from __future__ import annotations

import grp
import pwd
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from podwright.data.paths import odd_bytes, shown
from podwright.data.walk import Batch, Numbers, Rows
from podwright.data.walk_folders import FIELDS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_ROWS = 500_000
"""Rows that are held in memory before they are written: a tree may have a billion."""


class Staging:
    """Takes batches and writes them to `staged_folder` and `staged_file` of the database that `connection` has open."""

    def __init__(self, connection: DuckDBPyConnection, schema: str) -> None:
        self._connection, self._schema = connection, schema
        self._tables: dict[str, list[pa.Table]] = {"folder": [], "file": []}
        self._held = self._folders = 0
        self.unread: list[tuple[bytes, str]] = []
        types = ", ".join(f"{field} BIGINT" for field in FIELDS)
        for name in self._tables:
            connection.execute(
                f"CREATE TABLE {schema}.staged_{name} (name VARCHAR, raw BLOB, {types}, folder BIGINT, acl BLOB)"
            )

    def take(self, batch: Batch) -> None:
        """Take what one worker saw."""
        self.unread += batch.unread
        places = np.arange(self._folders, self._folders + len(batch.folders))
        acls: list[bytes | None] = [None] * len(places)
        for place, entries in batch.acls:
            acls[place] = entries
        self._tables["folder"].append(_table(batch.folders, places, pa.array(acls, pa.binary())))
        of_files = np.repeat(places, batch.counts)
        self._tables["file"].append(_table(batch.files, of_files, pa.nulls(len(of_files), pa.binary())))
        self._folders += len(places)
        self._held += len(of_files) + len(places)
        if self._held >= _ROWS:
            self.flush()

    @property
    def folders(self) -> int:
        """Return how many folders were taken."""
        return self._folders

    def flush(self) -> None:
        """Write what is held."""
        for name, tables in self._tables.items():
            if tables:
                self._connection.register("held", pa.concat_tables(tables))
                self._connection.execute(f"INSERT INTO {self._schema}.staged_{name} SELECT * FROM held")
                self._connection.unregister("held")
            tables.clear()
        self._held = 0

    def name_owners(self) -> None:
        """Make the tables that name every user and group that owns something."""
        for column, table, name_of in (("uid", "user_name", _user), ("gid", "group_name", _group)):
            sources = [f"SELECT {column} FROM {self._schema}.staged_{name}" for name in self._tables]
            rows = self._connection.execute(" UNION ".join(sources)).fetchall()
            numbers = [number for (number,) in rows]
            names = pa.table(
                {"id": pa.array(numbers, pa.int64()), "name": pa.array(map(name_of, numbers), pa.string())}
            )
            self._connection.register("held", names)
            self._connection.execute(f"CREATE TABLE {self._schema}.{table} AS SELECT * FROM held")
            self._connection.unregister("held")


def _table(rows: Rows, folders: Numbers, acls: pa.Array) -> pa.Table:
    columns: dict[str, Any] = dict(_texts(_names(rows)))
    columns |= {field: pa.array(numbers) for field, numbers in zip(FIELDS, rows.numbers, strict=True)}
    columns["folder"] = pa.array(folders)
    columns["acl"] = acls
    return pa.table(columns)


def _names(rows: Rows) -> pa.Array:
    """Return names end to end, as Arrow has them; the zero bytes between them say where each ends."""
    letters = np.frombuffer(rows.names, np.uint8)
    ends = np.flatnonzero(letters == 0)
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    offsets[1:] = ends - np.arange(len(ends))
    return pa.Array.from_buffers(
        pa.binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(letters[letters != 0].tobytes())]
    )


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
