"""Publishes a generation of the history again; tags are no part of it: files have those that they had last."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from podwright.data.catalog import schema
from podwright.data.catalog.carry import follow_renames
from podwright.data.catalog.files import FILE, literal, meta_of, put_rows
from podwright.data.catalog.store import Store
from podwright.data.query import bitmaps
from podwright.data.tree.roots import roots_of_meta
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TODAY = (
    schema.same_files(moved=False),
    "CREATE TEMP TABLE today AS SELECT s.id, t.name, t.value FROM old.tag t JOIN same s ON s.old_id = t.file",
)
_NOTHING = (
    "CREATE OR REPLACE TEMP TABLE same (old_id BIGINT, id BIGINT)",
    "CREATE OR REPLACE TEMP TABLE today (id BIGINT, name VARCHAR, value VARCHAR)",
)
_TAKEN = (
    "DELETE FROM tag USING same s WHERE tag.file = s.id",
    "INSERT INTO tag SELECT id, name, value FROM today",
)
_OTHERS = f"""SELECT f.id, {schema.PATH_BYTES}, f.size, f.mtime_ns FROM file f JOIN directory d ON d.id = f.dir
    WHERE f.id NOT IN (SELECT id FROM same) ORDER BY f.id"""
_LAST = (
    """DELETE FROM tag USING known_now n JOIN known_tag k USING (path)
        WHERE tag.file = n.id AND tag.name = k.name""",
    """INSERT INTO tag SELECT n.id, k.name, k.value FROM known_now n JOIN known_tag k USING (path)
        WHERE k.value IS NOT NULL""",
    "DROP TABLE known_now",
)


@dataclass(frozen=True, slots=True)
class Reverted:
    """A dataset that is as it was: its generation now, and the one of the history that this is."""

    dataset: str
    generation: int
    reverted_to: int

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data revert`."""
        return {"dataset": self.dataset, "generation": self.generation, "reverted_to": self.reverted_to}


def revert(store: Store, dataset: str, generation: int) -> Reverted:
    """Publish a generation of the history as a new one; all others stay in the history as they are."""
    with store.writing(dataset) as draft:
        current = store.generation(dataset)
        past = {past.generation: past for past in store.history(dataset)}
        if generation not in past or generation == current:
            numbers = ", ".join(str(number) for number in past if number != current) or "none yet"
            hint = f"podwright data history {dataset}: {numbers}"
            raise refuse(f"{dataset} has no generation {generation} to go back to", hint=hint, field="GENERATION")
        shutil.copyfile(store.file(dataset, generation), draft / FILE)
        with store.building(draft) as connection:
            _take_tags(connection, store, dataset, generation)
            bitmaps.build_tags(connection)
        facts = past[generation]
        store.publish(dataset, draft, {"files": facts.files, "changed": facts.changed})
        return Reverted(dataset, current + 1, generation)


def _take_tags(connection: DuckDBPyConnection, store: Store, dataset: str, generation: int) -> None:
    """Give files the tags of today, those that are gone what the journal says last; all others keep those of then."""
    journal = store.tag_journal(dataset)
    root = roots_of_meta(meta_of(connection)).key
    if generation < journal.began:  # the tree of another took the name since
        journal.begin()
        journal.load(connection)
        journal.note(connection, root)
        return
    earlier = _read_today(connection, store.file(dataset, store.generation(dataset)))
    for statement in _TAKEN:
        connection.execute(statement)
    journal.load(connection, earlier)
    connection.execute("DETACH DATABASE IF EXISTS old")
    others = connection.execute(_OTHERS).fetchall()
    now = follow_renames(store.path / dataset, [(path, size, mtime_ns) for _, path, size, mtime_ns in others])
    paths = [now[path, size, mtime_ns][0] for _, path, size, mtime_ns in others]
    table = pa.table({"id": [number for number, *_ in others], "path": pa.array(paths, pa.binary())})
    put_rows(connection, "CREATE TEMP TABLE known_now AS", table)
    for statement in _LAST:
        connection.execute(statement)
    left = [now_path for now_path, (_, path, *_) in zip(paths, others, strict=True) if now_path != path]
    journal.note(connection, root, left)


def _read_today(connection: DuckDBPyConnection, current: Path) -> str:
    """Read which files the generation of today knows, and their tags; return the query for all of them.

    Where it is damaged, that is nothing.
    """
    try:
        connection.execute(f"ATTACH '{literal(current)}' AS old (READ_ONLY)")
        for statement in _TODAY:
            connection.execute(statement)
    except duckdb.Error:
        for statement in _NOTHING:
            connection.execute(statement)
        return ""
    return schema.TAGS_OF_OLD
