"""Publishes a generation in ClickHouse: a table of its own, written whole, then one row that says that it is the one.

Whoever may read the database reads all that is in it. So without further words only that goes there which everybody
may read: files in folders that everybody may list, and of their content what everybody may read.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from podwright.clients.clickhouse import ClickHouse, ServerError
from podwright.data.catalog import schema, sharing
from podwright.data.catalog.files import literal as path_literal
from podwright.data.catalog.files import meta_of, put_rows
from podwright.data.catalog.store import Store
from podwright.data.clickhouse import dialect as sql
from podwright.data.clickhouse.dialect import POINTER, Dialect, literal, name
from podwright.data.clickhouse.rows import tab_separated
from podwright.data.labels.classes import classes_of
from podwright.data.tree.known_layouts import layout_of
from podwright.data.tree.roots import roots_of_meta
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_KEPT = 2
"""Generations that stay: who reads the one before goes on with it."""
_ORPHAN_S = 86_400
"""After so long a table that was never published is what a killed command has left."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was published, or was already."""

    catalog: str
    generation: int
    files: int
    left_out: int
    """Files that not everybody may see."""

    def as_json(self) -> dict[str, Any]:
        """Return it as `data scan` has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Publication:
    """A row of the table of what is published; without a table the dataset was withdrawn."""

    dataset: str
    generation: int
    table: str
    meta: dict[str, Any]


def publications_of(server: ClickHouse) -> dict[str, Publication]:
    """Return what is published of each dataset."""
    return {name: last for name, last in _last_rows(server).items() if last.table}


def _last_rows(server: ClickHouse) -> dict[str, Publication]:
    query = f"""SELECT dataset, generation, rows, meta FROM {POINTER}
        ORDER BY dataset, generation DESC, rows DESC LIMIT 1 BY dataset"""
    publications = {}
    for row in server.ask(query):
        dataset, generation, table, meta = ((cell or b"").decode() for cell in row)
        publications[dataset] = Publication(dataset, int(generation), table, json.loads(meta))
    return publications


def publish(store: Store, dataset: str, server: ClickHouse, everything: bool = False) -> Published:
    """Publish the generation of a dataset that this machine has; with `whole` also what not everybody may read."""
    import duckdb

    try:
        spoken = check_version(server)
        server.run(sql.pointer_statement())
        with duckdb.connect(":memory:") as connection:
            connection.execute("SET enable_progress_bar = false")
            generation = store.generation(dataset)
            connection.execute(f"ATTACH '{path_literal(store.file(dataset, generation))}' AS own (READ_ONLY)")
            return _Publishing(connection, server, dataset, (generation, everything)).run(spoken)
    except ServerError as error:
        raise server.refusal(error) from None


def withdraw(server: ClickHouse, dataset: str) -> None:
    """Take a dataset out of a database, with all of its tables."""
    try:
        last = _last_rows(server)[dataset]
        _point(server, Publication(dataset, last.generation + 1, "", {}))
        _sweep(server, dataset, generations=0)
    except ServerError as error:
        raise server.refusal(error) from None


def check_version(server: ClickHouse) -> Dialect:
    """Return what the server is spoken to with, or refuse one that is too old."""
    spoken = sql.dialect_of(server.version)
    if spoken is None:
        oldest = ".".join(map(str, sql.DIALECTS[0].since))
        version = ".".join(map(str, server.version))
        raise refuse(f"{server.address} is ClickHouse {version}", hint=f"{oldest} is the oldest that is spoken to")
    return spoken


class _Publishing:
    def __init__(
        self, connection: DuckDBPyConnection, server: ClickHouse, dataset: str, source: tuple[int, bool]
    ) -> None:
        self.connection, self.server, self.dataset = connection, server, dataset
        self.generation, self.everything = source
        self.meta = meta_of(connection, "own.")
        self.layout = layout_of(dataset, self.meta["layout"])

    def run(self, spoken: Dialect) -> Published:
        last = _last_rows(self.server).get(self.dataset)
        if last is not None and last.meta.get("source") == self._source():
            return self._published(last.generation, last.meta)
        self._choose()
        meta = self._described()
        classes = meta["classes"]
        number = last.generation + 1 if last is not None else 1
        table = f"{self.dataset}.g{number:06d}-{secrets.token_hex(4)}"
        self.server.run(sql.table_statement(spoken, table, self.layout, len(classes)))
        self.server.insert(name(table), tab_separated(self.connection, self.layout, len(classes)))
        self._check_whole(table, meta["files"])
        self.server.run(sql.view_statement(spoken, f"{table}.files", table, self.layout, classes))
        _point(self.server, Publication(self.dataset, number, table, meta))
        _sweep(self.server, self.dataset, _KEPT)
        return self._published(number, meta)

    def _published(self, generation: int, meta: dict[str, Any]) -> Published:
        return Published(str(self.server.address), generation, meta["files"], meta["left_out"])

    def _source(self) -> str:
        """Return what tells this generation from any other; tags and labels make one of the same scan."""
        return f"{self.meta['root_bytes']} {self.meta['scanned_at']} {self.generation} {self.everything}"

    def _choose(self) -> None:
        """Make the table `chosen`: which rows are published, under which numbers, and whether with their content."""
        folders, readable = "SELECT id FROM own.directory", "true"
        if not self.everything:
            roots = roots_of_meta(self.meta)
            if roots.has_address or roots.labelled:
                message = f"{roots.shown} does not tell who may read what lies there"
                raise refuse(message, hint="--whole publishes it for all who may read the database")
            audiences = sharing.audiences(self.connection, roots.first)
            listed = [number for number, audience in audiences.items() if not audience]
            put_rows(self.connection, "CREATE TEMP TABLE everybody AS", pa.table({"id": pa.array(listed, pa.int64())}))
            sharing.note_guarded(self.connection, roots.first)
            folders, readable = "SELECT id FROM everybody", sharing.may_read([])
        self.connection.execute(
            f"""CREATE TEMP TABLE chosen AS
            SELECT f.id, row_number() OVER (ORDER BY f.id) - 1 AS number, {readable} AS readable
            FROM own.file f WHERE f.dir IN ({folders})"""
        )

    def _described(self) -> dict[str, Any]:
        """Return what readers need to know beside the rows."""
        query = """SELECT count(*), coalesce(sum(f.size), 0)::BIGINT, (SELECT count(*) FROM own.file)
            FROM chosen c JOIN own.file f ON f.id = c.id"""
        files, size_bytes, every = self.connection.execute(query).fetchone() or (0, 0, 0)
        classes = self._names("SELECT name FROM own.class ORDER BY place")
        pending = []
        if not classes:
            pending = [label.name for label in classes_of(self.layout, Path(self.meta["root"]))]
        tags = "SELECT DISTINCT t.name FROM own.tag t JOIN chosen c ON c.id = t.file AND c.readable ORDER BY 1"
        return {
            "format": schema.FORMAT,
            **{key: self.meta[key] for key in ("root", "root_bytes", "layout", "scanned_at")},
            **{key: self.meta[key] for key in ("roots",) if key in self.meta},
            "source": self._source(),
            "files": files,
            "bytes": size_bytes,
            "left_out": every - files,
            "classes": classes,
            "pending": pending,
            "tags": self._names(tags),
        }

    def _names(self, query: str) -> list[str]:
        return [row[0] for row in self.connection.execute(query).fetchall()]

    def _check_whole(self, table: str, files: int) -> None:
        ((count,),) = self.server.ask(f"SELECT count() FROM {name(table)}")
        if int(count or b"0") != files:
            message = f"{self.server.address} has {int(count or b'0')} of {files} rows; nothing was published"
            raise refuse(message, hint="scan again", exit_code=1)


def _point(server: ClickHouse, published: Publication) -> None:
    """Make a table the one that readers see."""
    values = [published.dataset, published.generation, published.table, int(time.time()), json.dumps(published.meta)]
    server.run(f"INSERT INTO {POINTER} VALUES ({', '.join(map(literal, values))})")


def _sweep(server: ClickHouse, dataset: str, generations: int) -> None:
    """Drop generations that others have followed, and what commands that were killed have left."""
    of_dataset = f"SELECT rows FROM {POINTER} WHERE dataset = {literal(dataset)}"
    pattern = literal(f"^{dataset.replace('.', '[.]')}[.]g[0-9]+-[0-9a-f]{{8}}$")
    query = f"""SELECT name FROM system.tables WHERE database = {literal(server.address.database)}
        AND (name IN ({of_dataset})
                AND name NOT IN ({of_dataset} ORDER BY generation DESC, rows DESC LIMIT {generations})
            OR match(name, {pattern}) AND name NOT IN (SELECT rows FROM {POINTER})
                AND metadata_modification_time < now() - {_ORPHAN_S})"""
    for (table,) in list(server.ask(query)):
        gone = (table or b"").decode()
        server.run(f"DROP TABLE IF EXISTS {name(f'{gone}.files')}")
        server.run(f"DROP TABLE IF EXISTS {name(gone)}")
