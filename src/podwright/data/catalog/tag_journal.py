"""Tags in a journal of their own, which no scan, no revert and no damaged generation takes away.

catalog/NAME/tags/g000007.parquet        what generation 7 changed, a row for each file and tag: path, size, mtime_ns,
                                         name, value; without a value where a tag was taken away
catalog/NAME/tags/g000007.all.parquet    the same of all generations up to it; older parts are needed no more

A part is written before its generation is published, and believed from then on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from podwright.data.catalog.files import put_rows
from podwright.data.catalog.schema import PATH_BYTES
from podwright.files.whole import make_private, whole_file

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FOLDER = "tags"
MAX_PARTS = 32
_PART = re.compile(r"g(\d{6,})(\.all)?\.parquet")
_ROOT, _BEGAN = b"root", b"began"
_COLUMNS = pa.schema(
    [
        ("path", pa.binary()),
        ("size", pa.int64()),
        ("mtime_ns", pa.int64()),
        ("name", pa.string()),
        ("value", pa.string()),
    ]
)
_STEP = pa.field("step", pa.int32())
_PATHS = f"SELECT f.id, {PATH_BYTES} AS path, f.size, f.mtime_ns FROM file f JOIN directory d ON d.id = f.dir"
_CHANGES = (
    f"""CREATE TEMP TABLE tag_now AS
        SELECT f.path, f.size, f.mtime_ns, t.name, t.value FROM tag t JOIN ({_PATHS}) f ON f.id = t.file""",
    "CREATE TEMP TABLE tag_change AS SELECT * FROM tag_now EXCEPT SELECT * FROM known_tag",
    # Of a file that is gone what was said of it stays, for the day it comes back.
    f"""INSERT INTO tag_change SELECT k.path, k.size, k.mtime_ns, k.name, NULL
        FROM (SELECT * FROM known_tag ANTI JOIN tag_now USING (path, name)) k WHERE k.value IS NOT NULL
            AND k.path IN (SELECT path FROM ({_PATHS}) UNION ALL SELECT path FROM left_path)""",
    "DROP TABLE tag_now",
)
_ALL = """SELECT * FROM tag_change
    UNION ALL SELECT * FROM known_tag ANTI JOIN tag_change USING (path, name) ORDER BY path, name"""


class TagJournal:
    """What was ever said of the tags of a dataset, as of its published generation.

    `known_tag` is a table of a connection that builds the next one: the last that was said of each path and tag.
    """

    def __init__(self, folder: Path, generation: int) -> None:
        self._folder, self._next = folder / FOLDER, generation + 1
        self._parts = [part for part in map(_read, _believed(self._folder, generation)) if part is not None]
        notes = (self._parts[-1].schema.metadata or {}) if self._parts else {}
        self._root = notes.get(_ROOT)
        self.began = int(notes.get(_BEGAN, 0))
        """The generation with which another tree took the name; what is older knows nothing of this one."""

    def is_of(self, root: bytes) -> bool:
        """Say whether it is of this tree."""
        return self._root == root

    def begin(self) -> None:
        """Begin anew with the next generation: it is of another tree."""
        self._parts, self._root, self.began = [], None, self._next

    def load(self, connection: DuckDBPyConnection, earlier: str = "") -> None:
        """Make `known_tag`; where there is no journal yet, of what the query `earlier` gives, by the same columns."""
        told = [_COLUMNS.append(_STEP).empty_table()]
        for step, part in enumerate(self._parts):
            told.append(part.append_column(_STEP, pa.array(np.full(len(part), step, np.int32))))
        put_rows(connection, "CREATE TEMP TABLE told AS", pa.concat_tables(told))
        connection.execute("""CREATE TEMP TABLE known_tag AS SELECT * EXCLUDE (step) FROM told
            QUALIFY row_number() OVER (PARTITION BY path, name ORDER BY step DESC) = 1""")
        connection.execute("DROP TABLE told")
        if earlier and not self._parts:
            connection.execute(f"INSERT INTO known_tag {earlier}")

    def give_back(self, connection: DuckDBPyConnection, which: str) -> None:
        """Give files what was said of them last; `which` is the SQL of for which files `f` that holds, of tags `k`."""
        connection.execute(f"""INSERT INTO tag SELECT f.id, k.name, k.value FROM known_tag k
            JOIN ({_PATHS}) f USING (path) WHERE k.value IS NOT NULL AND {which}""")

    def note(self, connection: DuckDBPyConnection, root: bytes, left: Sequence[bytes] = ()) -> None:
        """Write down what the generation that is being built says otherwise than the journal.

        `left`: paths that files were moved away from, with their tags.
        """
        put_rows(connection, "CREATE TEMP TABLE left_path AS", pa.table({"path": pa.array(left, pa.binary())}))
        for statement in _CHANGES:
            connection.execute(statement)
        is_all = not self._parts or len(self._parts) >= MAX_PARTS
        rows = connection.sql(_ALL if is_all else "SELECT * FROM tag_change").to_arrow_table()
        (changes,) = connection.execute("SELECT count(*) FROM tag_change").fetchall()[0]
        for name in ("known_tag", "tag_change", "left_path"):
            connection.execute(f"DROP TABLE {name}")
        is_first = not self._parts and (len(rows) or self.began)
        if changes or is_first or (self._parts and not self.is_of(root)):
            self._write(rows, root, is_all)

    def _write(self, rows: pa.Table, root: bytes, is_all: bool) -> None:
        make_private(self._folder)
        notes = {_ROOT: root, _BEGAN: str(self.began).encode()}
        name = f"g{self._next:06d}{'.all' if is_all else ''}.parquet"
        with whole_file(self._folder / name) as file:
            parquet.write_table(rows.cast(_COLUMNS).replace_schema_metadata(notes), file, compression="zstd")


def sweep(folder: Path, generation: int) -> None:
    """Remove parts of generations that never were, and those that are needed no more."""
    believed = _believed(folder / FOLDER, generation)
    for path in _parts(folder / FOLDER):
        if path not in believed:
            path.unlink()


def _believed(folder: Path, generation: int) -> list[Path]:
    """Return the parts up to a generation, the oldest first, from the last on that says all."""
    parts = [path for path in _parts(folder) if _number(path) <= generation]
    begins = [place for place, path in enumerate(parts) if path.stem.endswith(".all")]
    return parts[begins[-1] :] if begins else parts


def _read(path: Path) -> pa.Table | None:
    """Return a part; one that is damaged is left out: what the generation knows is noted again."""
    try:
        table = parquet.read_table(path)
        notes = table.schema.metadata
        return table.select(_COLUMNS.names).cast(_COLUMNS).replace_schema_metadata(notes)
    except (pa.ArrowException, OSError, KeyError):
        return None


def _parts(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _PART.fullmatch(path.name)), key=_number)


def _number(path: Path) -> int:
    match = _PART.fullmatch(path.name)
    return int(match[1]) if match else 0
