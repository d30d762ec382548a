"""The SQLite index: a cache of the run folders, so that `ps` is as fast with ten thousand runs as with ten."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from podwright.runs.facts import COLUMNS as COLUMNS_OF_RUNS
from podwright.runs.facts import facts_of
from podwright.runs.query import HAS_FACT, NEWEST_FIRST, RunCondition, RunOrder, RunPlace, both, page_query
from podwright.runs.record import Record, as_row, from_row
from podwright.runs.spent import IndexQuestion, Told

SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, parent TEXT, created_at REAL NOT NULL, state TEXT NOT NULL, record TEXT NOT NULL,
    change INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_time ON runs (created_at);
CREATE INDEX IF NOT EXISTS by_parent ON runs (parent);
CREATE INDEX IF NOT EXISTS open_runs ON runs (state) WHERE state NOT IN ('succeeded', 'failed', 'cancelled');
CREATE TABLE IF NOT EXISTS facts (run TEXT, name TEXT, value, PRIMARY KEY (run, name, value)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_value ON facts (name, value);
CREATE INDEX IF NOT EXISTS by_change ON runs (change);
CREATE TABLE IF NOT EXISTS gone (run TEXT PRIMARY KEY, change INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (one INTEGER PRIMARY KEY CHECK (one = 1), runs_ns INTEGER);
CREATE TABLE IF NOT EXISTS made (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT, change INTEGER);
INSERT OR IGNORE INTO made VALUES (1, lower(hex(randomblob(6))), 0);
PRAGMA user_version = 3;
"""
VERSION = 3
COLUMNS = {
    "runs": ("id", "parent", "created_at", "state", "record", "change"),
    "facts": ("run", "name", "value"),
    "gone": ("run", "change"),
    "seen": ("one", "runs_ns"),
    "made": ("one", "name", "change"),
}
PUT = """
INSERT INTO runs VALUES (?, ?, ?, ?, ?, (SELECT change + 1 FROM made))
ON CONFLICT (id) DO UPDATE SET parent = excluded.parent, created_at = excluded.created_at, state = excluded.state,
    record = excluded.record, change = excluded.change
WHERE record != excluded.record
"""
"""A record that is as it was is no change."""
GONE = "INSERT OR REPLACE INTO gone SELECT ?, change FROM made"
NAMES = """
WITH RECURSIVE names (name) AS (
    SELECT min(name) FROM facts
    UNION ALL SELECT (SELECT min(name) FROM facts WHERE name > names.name) FROM names WHERE names.name IS NOT NULL
) SELECT name FROM names WHERE name IS NOT NULL
"""
"""From one name to the next by the index: there are a few dozen of them in millions of rows."""
Answer = TypeVar("Answer")
NETWORK_FILE_SYSTEMS = frozenset(
    ["nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "fuse.sshfs", "9p"]
)


def index_path(home: Path) -> Path:
    """Return where the index lies: on local disk when home is on a network, where SQLite's locks cannot be trusted."""
    if file_system_of(home) not in NETWORK_FILE_SYSTEMS:
        return home / "index.db"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podwright"
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    from hashlib import sha256  # OpenSSL takes milliseconds, which few commands need

    return cache / f"index-{sha256(str(home).encode()).hexdigest()[:12]}.db"


def file_system_of(path: Path, mounts: str = "/proc/self/mounts") -> str:
    """Return the kind of the file system that a path is on, as its longest mount point says; empty when unknown."""
    best, kind = "", ""
    try:
        lines = Path(mounts).read_text().splitlines()
    except OSError:
        return ""
    target = str(path.resolve())
    for line in lines:
        _, point, name, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind


def _text(row: tuple[Any, ...]) -> str:
    if not isinstance(row[0], str):
        raise ValueError("it is no text")
    return row[0]


def _whole(row: tuple[Any, ...]) -> int:
    if not isinstance(row[0], int):
        raise ValueError("it is no number")
    return row[0]


def _record(row: tuple[Any, ...]) -> Record:
    record = from_row(json.loads(_text(row)))
    if record.id != row[1]:
        raise ValueError("it is the record of another run")
    return record


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """A run, and its place in the order that was asked for."""

    record: Record
    place: RunPlace


@dataclass(frozen=True, slots=True)
class IndexChange:
    """A change of the index: its number counts from the making of the file, which has a name of its own."""

    name: str
    number: int


class Index:
    """Every method is one transaction, and one thread at a time is inside.

    A broken file is thrown away and filled again from the folders by `refill`.
    """

    def __init__(self, path: Path, refill: Callable[[], None] = lambda: None) -> None:
        self._path = path
        self._refill = refill
        self._link: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    @classmethod
    def of(cls, records: Iterable[Record]) -> Index:
        """Return an index in memory of these records alone."""
        index = cls(Path())
        index._link = index._connect(":memory:")
        index.put(records)
        return index

    def _open(self) -> sqlite3.Connection:
        if self._link is None:
            try:
                self._make_private()
                self._link = self._connect(str(self._path))
            except sqlite3.DatabaseError as error:
                if "readonly" in str(error) or "unable to open" in str(error):
                    self._link = self._connect(":memory:")  # a home that cannot be written is still read
                elif "locked" in str(error):
                    raise
                else:
                    self.forget()
                    if self._link is None:
                        self._make_private()
                        self._link = self._connect(str(self._path))
        return self._link

    def _make_private(self) -> None:
        """Make the file for this user alone; SQLite gives its two companions the same mode.

        One that is there is not opened: closing it would end the locks that SQLite has on it in this process.
        """
        with suppress(OSError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                Path(f"{self._path}{suffix}").chmod(0o600)

    def _connect(self, path: str) -> sqlite3.Connection:
        # Our own lock keeps threads apart, so that any of them may use the connection.
        link = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        try:
            version = link.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, VERSION):  # of an older one the rows lack their facts
                raise sqlite3.DatabaseError("it is of another version")
            if version == 0:
                link.execute("PRAGMA journal_mode = WAL")
                link.executescript(SCHEMA)
            for table, columns in COLUMNS.items():
                rows = link.execute("SELECT name FROM pragma_table_info(?)", (table,))
                if tuple(row[0] for row in rows) != columns:
                    raise sqlite3.DatabaseError(f"{table} has other columns")
            link.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            link.close()
            raise
        return link

    def forget(self) -> None:
        """Throw the file away."""
        with self._lock:
            self.close()
            try:
                for suffix in ("", "-wal", "-shm"):
                    Path(f"{self._path}{suffix}").unlink(missing_ok=True)
            except OSError:  # read-only: it is made in memory, for this client alone
                self._link = self._connect(":memory:")

    def close(self) -> None:
        """Close the file; the next question opens it again."""
        with self._lock:
            if self._link is not None:
                self._link.close()
                self._link = None

    def put(self, records: Iterable[Record]) -> None:
        """Put records in, in place of what was known of their runs."""
        values, facts = [], []
        for record in records:
            text = json.dumps(as_row(record))
            values.append((record.id, record.parent, record.created_at, record.state, text))
            facts += [(record.id, *fact) for fact in facts_of(record)]
        if not values:
            return
        with self._lock:
            link = self._open()
            try:
                with closing(link.cursor()) as cursor:
                    cursor.execute("BEGIN IMMEDIATE")
                    cursor.executemany(PUT, values)
                    if cursor.rowcount > 0:
                        cursor.execute("UPDATE made SET change = change + 1")
                        cursor.executemany("DELETE FROM gone WHERE run = ?", [value[:1] for value in values])
                    cursor.executemany("DELETE FROM facts WHERE run = ?", [value[:1] for value in values])
                    cursor.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?, ?)", facts)
                    cursor.execute("COMMIT")
            except sqlite3.OperationalError:
                if link.in_transaction:
                    link.execute("ROLLBACK")

    def _texts(self, query: str, values: Sequence[Any] = ()) -> list[str]:
        return self._ask(query, values, _text)

    def _ask(self, query: str, values: Sequence[Any], read: Callable[[tuple[Any, ...]], Answer]) -> list[Answer]:
        """Return what `read` makes of each row; a row that it refuses, or a damaged page, has the file made anew."""
        with self._lock:
            try:
                return list(map(read, self._open().execute(query, values)))
            except sqlite3.OperationalError:
                raise
            except (sqlite3.DatabaseError, ValueError, RecursionError):
                self.forget()
                self._refill()
                return list(map(read, self._open().execute(query, values)))

    def drop(self, ids: Iterable[str]) -> None:
        """Forget runs."""
        with self._lock, suppress(sqlite3.OperationalError):  # read-only
            named = [(run_id,) for run_id in ids]
            if not named:
                return
            self._open().execute("UPDATE made SET change = change + 1")
            for query in (GONE, "DELETE FROM runs WHERE id = ?", "DELETE FROM facts WHERE run = ?"):
                self._open().executemany(query, named)

    def ids(self) -> set[str]:
        """Return the ids of all runs, points too."""
        return set(self._texts("SELECT id FROM runs"))

    def starting_with(self, text: str) -> list[str]:
        """Return the runs whose id starts so; a point is left out where its parent's does."""
        query = (
            "SELECT id FROM runs WHERE id >= ? AND id < ?"
            " AND (parent IS NULL OR parent < ? OR parent >= ?) ORDER BY id LIMIT 20"
        )
        return self._texts(query, (text, text + "\U0010ffff") * 2)

    def latest(self, limit: int | None) -> list[Record]:
        """Return the newest runs that are no point of another, oldest first; all of them without a limit."""
        query = "SELECT record, id FROM runs WHERE +parent IS NULL ORDER BY created_at DESC LIMIT ?"
        everything = -1
        records = self._ask(query, (everything if limit is None else limit,), _record)
        return records[::-1]

    def fact_names(self) -> list[str]:
        """Return the names that any run has a value of."""
        return self._texts(NAMES)

    def chosen(self, condition: RunCondition, order: RunOrder, limit: int | None) -> list[Record]:
        """Return the runs that a condition holds of, in an order; what has no value to sort by comes last."""
        everything = -1
        bound = everything if limit is None else limit
        column = COLUMNS_OF_RUNS.get(order.name)
        if column is not None:
            query = f"SELECT record, id FROM runs WHERE {condition.sql} ORDER BY {column} {order.direction} LIMIT ?"
            return self._ask(query, (*condition.values, bound), _record)
        # By the index of values: the least of a hundred thousand is found at once.
        query = (
            "SELECT record, id FROM facts AS f CROSS JOIN runs ON id = f.run"
            f" WHERE f.name = ? AND ({condition.sql}) ORDER BY f.value {order.direction} LIMIT ?"
        )
        found = self._ask(query, (order.name, *condition.values, bound), _record)
        if limit is None or len(found) < limit:
            missing = both(condition, RunCondition(f"NOT {HAS_FACT}", (order.name,)))
            found += self.chosen(missing, NEWEST_FIRST, None if limit is None else limit - len(found))
        return found

    def page(self, condition: RunCondition, order: RunOrder, size: int, after: RunPlace | None) -> list[PlacedRun]:
        """Return the next runs behind a place in an order; what has no value to sort by comes last, the newest first.

        However far behind the place is, as many rows are read as are returned.
        """
        is_behind = after is None or after.has_value
        found = self._placed(condition, order, size, after) if is_behind else []
        if order.name in COLUMNS_OF_RUNS or len(found) == size:
            return found
        missing = both(condition, RunCondition(f"NOT {HAS_FACT}", (order.name,)))
        rest = self._placed(missing, NEWEST_FIRST, size - len(found), None if is_behind else after)
        return found + [PlacedRun(row.record, RunPlace(row.place.value, row.place.run, False)) for row in rest]

    def _placed(self, condition: RunCondition, order: RunOrder, size: int, after: RunPlace | None) -> list[PlacedRun]:
        query, values = page_query(condition, order, after)
        return self._ask(query, (*values, size), lambda row: PlacedRun(_record(row), RunPlace(row[2], str(row[1]))))

    def change(self) -> IndexChange:
        """Return the number of the last change; numbers of an index that was made anew have another name."""
        return self._ask("SELECT name, change FROM made", (), lambda row: IndexChange(str(row[0]), int(row[1])))[0]

    def changed_since(self, number: int) -> list[str]:
        """Return the runs that were put in, changed or dropped after a change."""
        query = "SELECT id FROM runs WHERE change > ? UNION SELECT run FROM gone WHERE change > ?"
        return self._texts(query, (number, number))

    def answer(self, question: IndexQuestion[Told]) -> list[Told]:
        """Return what the index says to a question of others."""
        return self._ask(question.query, question.values, question.read)

    def record(self, run_id: str) -> Record | None:
        """Return what was last known of a run; None when nothing was."""
        for record in self._ask("SELECT record, id FROM runs WHERE id = ?", (run_id,), _record):
            return record
        return None

    def points(self, parent: str) -> list[str]:
        """Return the ids of the points of a run, in no order."""
        return self._texts("SELECT id FROM runs WHERE parent = ?", (parent,))

    def open_ids(self, now: float) -> list[str]:
        """Return the runs that may still change, points apart; a lost one may turn up again for a week.

        A plus keeps SQLite from an index that would have it go through all runs.
        """
        query = (
            "SELECT id FROM runs WHERE state NOT IN ('succeeded', 'failed', 'cancelled') AND +parent IS NULL"
            " AND (state != 'lost' OR created_at > ?) ORDER BY +created_at"
        )
        return self._texts(query, (now - 7 * 86400.0,))

    def last_id(self) -> str | None:
        """Return the newest run that is no point of another; None when there is no run."""
        query = "SELECT id FROM runs WHERE +parent IS NULL ORDER BY created_at DESC LIMIT 1"
        for run_id in self._texts(query):
            return run_id
        return None

    def seen_ns(self) -> int | None:
        """Return when the folder of all runs had last changed when it was last looked through; None before."""
        for runs_ns in self._ask("SELECT runs_ns FROM seen", (), _whole):
            return runs_ns
        return None

    def see(self, runs_ns: int) -> None:
        """Keep that the folder of all runs was looked through as it was then."""
        with self._lock, suppress(sqlite3.OperationalError):  # read-only: the folders are looked at again next time
            self._open().execute("INSERT OR REPLACE INTO seen VALUES (1, ?)", (runs_ns,))
