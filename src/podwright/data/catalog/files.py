"""The files of a generation that a reader may open, as one connection on which `file` means all of them.

What a catalog holds is data to its readers, never code: a file is attached by the descriptor that was checked, on a
connection that reaches nothing else; of its tables only those of a fixed list are named, and its views are not used.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection

FILE = "own.duckdb"
SHARED = "shared.json"
SHARED_FORMAT = 2
"""Before, gates belonged to those who pass them."""
META = "CREATE TABLE meta (key VARCHAR, value VARCHAR)"
_NEEDED = ("file", "directory", "class", "tag", "meta")
_TABLES = (*_NEEDED, "label")
"""What a filter or a user's own query may ask for; indexes are asked for in each file by itself."""
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


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
    checked: CheckedFiles

    @property
    def left_out(self) -> int:
        """Return how many files for this reader are not what was published."""
        return self.checked.left_out

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self.connection.close()
        self.checked.close()


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """Descriptors of files that were checked. They stay open as long as DuckDB reads by them."""

    descriptors: tuple[int, ...]
    left_out: int = 0

    def close(self) -> None:
        """Close them all."""
        for descriptor in self.descriptors:
            os.close(descriptor)


def check_files(generation: Path) -> CheckedFiles:
    """Open the files of a generation that this user may open: all in one, or those that are shared with him.

    A file that is not what was published is left out, and counted.
    """
    with suppress(PermissionError):
        return CheckedFiles((_open_file(generation / FILE),))
    publisher = generation.stat().st_uid
    descriptors: list[int] = []
    left_out = 0
    try:
        for row in json.loads((generation / SHARED).read_bytes())["files"]:
            with suppress(PermissionError):
                descriptor = _open_shared(generation, row["path"], publisher)
                descriptors.append(descriptor)
                if any(row[key] != value for key, value in seal(descriptor).items()):
                    os.close(descriptors.pop())
                    left_out += 1
    except BaseException:
        CheckedFiles(tuple(descriptors)).close()
        raise
    return CheckedFiles(tuple(descriptors), left_out)


def _open_file(name: str | Path, folder: int | None = None) -> int:
    descriptor = os.open(name, _OPEN, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{name} is no file")
    return descriptor


def _open_shared(generation: Path, path: str, publisher: int) -> int:
    """Open a file behind its gates, all of which must be the publisher's."""
    *gates, name = path.split("/")
    if {"", ".", ".."} & {*gates, name}:
        raise OSError(f"{path} leads out of the generation")
    folder = os.open(generation, _PASS)
    try:
        for gate in gates:
            inner = os.open(gate, _PASS, dir_fd=folder)
            os.close(folder)
            folder = inner
            _check_owner(generation, folder, publisher)
        descriptor = _open_file(name, folder)
    finally:
        os.close(folder)
    try:
        _check_owner(generation, descriptor, publisher)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_owner(generation: Path, descriptor: int, publisher: int) -> None:
    """Refuse what a reader owns, as generations of 0.2 and earlier have it: he could write what others read."""
    status = os.fstat(descriptor)
    if status.st_uid != publisher or status.st_mode & 0o022:
        dataset = generation.parent.name
        message = f"{dataset} was shared by an earlier version, and its readers could write what others read"
        raise refuse(message, hint=f"root makes it again: podwright data scan PATH --name {dataset}", exit_code=1)


def seal(descriptor: int) -> dict[str, int]:
    """Return what nobody but root can give a file again once it was touched."""
    status = os.fstat(descriptor)
    return {"inode": status.st_ino, "ctime_ns": status.st_ctime_ns}


def open_files(checked: CheckedFiles) -> Opened:
    """Open files that were checked, read-only, on a connection that reaches nothing else; tables of several are one."""
    import duckdb

    if not checked.descriptors:
        raise PermissionError("nothing in it may be read by you")
    connection = duckdb.connect(":memory:")
    try:
        for statement in _locks(checked.descriptors):
            connection.execute(statement)
        parts = []
        for number, descriptor in enumerate(checked.descriptors):
            alias = f"part{number}"
            _attach(connection, descriptor, alias)
            _check_tables(connection, alias)
            row = connection.execute(f"SELECT count(*) FROM {alias}.main.file").fetchone() or (0,)
            parts.append(CatalogFile(alias, row[0]))
        for statement in _names(connection, parts):
            connection.execute(statement)
    except BaseException:
        connection.close()
        checked.close()
        raise
    return Opened(connection, tuple(parts), checked)


def _attach(connection: DuckDBPyConnection, descriptor: int, alias: str) -> None:
    """Attach an open file, and refuse what DuckDB has open where it is another.

    DuckDB asks under which name the open file is known and opens that name: somebody may have been faster.
    """
    with _attaching:
        before = _times_open(descriptor)
        connection.execute(f"ATTACH '{_link(descriptor)}' AS {alias} (READ_ONLY)")
        if _times_open(descriptor) <= before:
            raise OSError("it was replaced while it was opened")


_attaching = threading.Lock()
"""So that no other thread opens the same file meanwhile."""


def _times_open(descriptor: int) -> int:
    """Return how often this process has the file open that a descriptor is of."""
    wanted, times = os.fstat(descriptor), 0
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            times += os.path.samestat(os.fstat(int(link.name)), wanted)
    return times


def _link(descriptor: int) -> str:
    # Not /proc/self, which DuckDB resolves before it asks whether the path is one of those allowed.
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _locks(descriptors: Iterable[int]) -> Iterator[str]:
    """Yield what keeps a connection from all files but these and from the network, for good."""
    links = [_link(descriptor) for descriptor in descriptors]
    paths = [*links, *map(os.path.realpath, links)]
    # DuckDB looks for the log of a database beside it; none of these has one.
    allowed = ", ".join(f"'{literal(Path(path))}', '{literal(Path(path))}.wal'" for path in paths)
    yield "SET enable_progress_bar = false"
    yield "SET autoinstall_known_extensions = false"
    yield "SET autoload_known_extensions = false"
    yield f"SET allowed_paths = [{allowed}]"
    yield "SET enable_external_access = false"
    yield "SET lock_configuration = true"


def literal(path: Path) -> str:
    """Return a path as it stands between the quotes of SQL."""
    return str(path).replace("'", "''")


def _check_tables(connection: DuckDBPyConnection, alias: str) -> None:
    """Refuse a file that lacks a table, or has a view in its place."""
    tables = _tables(connection, alias)
    needed = list(_NEEDED)
    if "class" in tables and connection.execute(f"SELECT count(*) FROM {alias}.main.class").fetchone() != (0,):
        needed.append("label")
    for name in needed:
        if name not in tables:
            raise OSError(f"it has no table {name}")


def _tables(connection: DuckDBPyConnection, alias: str) -> set[str]:
    query = "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main'"
    return {name for (name,) in connection.execute(query, [alias]).fetchall()}


def _names(connection: DuckDBPyConnection, parts: Sequence[CatalogFile]) -> Iterator[str]:
    if len(parts) == 1:
        yield f"USE {parts[0].alias}"
        return
    for name in _TABLES:
        having = [part.alias for part in parts if name in _tables(connection, part.alias)]
        union = " UNION ALL BY NAME ".join(f'SELECT * FROM {alias}.main."{name}"' for alias in having)
        if union:
            yield f'CREATE TEMP VIEW "{name}" AS {union}'


def meta_of(connection: DuckDBPyConnection, schema_name: str = "") -> dict[str, str]:
    """Return what a generation says of itself."""
    return dict(connection.execute(f"SELECT key, value FROM {schema_name}meta").fetchall())


def put_rows(connection: DuckDBPyConnection, into: str, rows: pa.Table) -> None:
    """Put rows behind a statement such as `INSERT INTO tag` or `CREATE TEMP TABLE gone AS`."""
    connection.register("given_rows", rows)
    connection.execute(f"{into} SELECT * FROM given_rows")
    connection.unregister("given_rows")
