"""The files of a generation that a reader may open, as one connection on which `file` means all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

FILE = "own.duckdb"
SHARED = "shared.json"
META = "CREATE TABLE meta (key VARCHAR, value VARCHAR)"
_LOCKS = (
    "SET enable_progress_bar = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    # What is attached stays so; from here on the connection reaches no other file and no network.
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """One file of a generation: the name it is attached under, and how many files it describes."""

    alias: str
    rows: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A generation that is open for reading; leaving its block closes it."""

    connection: DuckDBPyConnection
    parts: tuple[CatalogFile, ...]
    left_out: int = 0
    """How many files for this reader are not what was published."""

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()


def readable_files(generation: Path) -> tuple[list[Path], int]:
    """Return the files of a generation that this user may open: all in one, or those that are shared with him.

    A file that belongs to somebody else may have been written over by him: one that is not what was published is left
    out, and counted.
    """
    own = generation / FILE
    if os.access(own, os.R_OK):
        return [own], 0
    listed = json.loads((generation / SHARED).read_bytes())["files"]
    readable = [row for row in listed if os.access(generation / row["path"], os.R_OK)]
    sound = [generation / row["path"] for row in readable if _is_as_published(generation / row["path"], row)]
    return sound, len(readable) - len(sound)


def seal(path: Path) -> dict[str, int]:
    """Return what nobody but root can give a file again once it was touched."""
    status = path.stat()
    return {"inode": status.st_ino, "ctime_ns": status.st_ctime_ns}


def _is_as_published(path: Path, row: dict[str, int]) -> bool:
    return all(row[key] == value for key, value in seal(path).items())


def open_files(paths: Sequence[Path], left_out: int = 0) -> Opened:
    """Open files read-only and lock the connection; tables of several are seen as one."""
    import duckdb

    if not paths:
        raise PermissionError("nothing in it may be read by you")
    connection = duckdb.connect(":memory:")
    try:
        parts = []
        for number, path in enumerate(paths):
            alias = f"part{number}"
            connection.execute(f"ATTACH '{literal(path)}' AS {alias} (READ_ONLY)")
            row = connection.execute(f"SELECT count(*) FROM {alias}.file").fetchone() or (0,)
            parts.append(CatalogFile(alias, row[0]))
        for statement in [*_names(connection, parts), *_LOCKS]:
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return Opened(connection, tuple(parts), left_out)


def literal(path: Path) -> str:
    """Return a path as it stands between the quotes of SQL."""
    return str(path).replace("'", "''")


def _names(connection: DuckDBPyConnection, parts: Sequence[CatalogFile]) -> list[str]:
    if len(parts) == 1:
        return [f"USE {parts[0].alias}"]
    query = """SELECT DISTINCT table_name FROM information_schema.tables
        WHERE table_catalog LIKE 'part%' AND table_type = 'BASE TABLE'"""
    statements = []
    for (name,) in connection.execute(query).fetchall():
        union = " UNION ALL BY NAME ".join(f"SELECT * FROM {part.alias}.{name}" for part in parts)
        statements.append(f"CREATE TEMP VIEW {name} AS {union}")
    # The view of a user's own queries is the same in all parts; made here, it is over the tables of all of them.
    views = "SELECT sql FROM duckdb_views() WHERE database_name = 'part0' AND view_name = 'files'"
    for (text,) in connection.execute(views).fetchall():
        statements.append(text.replace("CREATE VIEW", "CREATE TEMP VIEW", 1))
    return statements


def meta_of(connection: DuckDBPyConnection, schema_name: str = "") -> dict[str, str]:
    """Return what a generation says of itself."""
    return dict(connection.execute(f"SELECT key, value FROM {schema_name}meta").fetchall())


def put_rows(connection: DuckDBPyConnection, into: str, rows: pa.Table) -> None:
    """Put rows behind a statement such as `INSERT INTO tag` or `CREATE TEMP TABLE gone AS`."""
    connection.register("given_rows", rows)
    connection.execute(f"{into} SELECT * FROM given_rows")
    connection.unregister("given_rows")
