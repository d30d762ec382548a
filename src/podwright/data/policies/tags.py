"""Tags: names and values that people and programs give to files; filters know them as columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from podwright.data.catalog.dataset import Dataset, open_dataset, source_of
from podwright.data.catalog.files import meta_of, put_rows
from podwright.data.catalog.schema import PATH_BYTES
from podwright.data.catalog.store import Store
from podwright.data.query import bitmaps
from podwright.data.tree.roots import roots_of_meta
from podwright.spec.problems import refuse, short

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_NAME = re.compile(r"[A-Za-z][\w.-]{0,62}", re.ASCII)
_LONGEST = 1000
_HINT = "write it like `weather=rain`; a name has letters, digits, dots, dashes and underscores"


def parse_tag(text: str) -> tuple[str, str]:
    """Return name and value of `NAME=VALUE`; an empty value takes the tag away."""
    name, sign, value = text.partition("=")
    if not sign:
        raise refuse(f'"{short(text)}" is no tag', hint=_HINT)
    return name, check_tag(name, value)


def check_tag(name: str, value: str) -> str:
    """Return the value of a tag, or refuse its name or its length."""
    if not _NAME.fullmatch(name):
        raise refuse(f'"{short(f"{name}={value}")}" is no tag', hint=_HINT)
    if len(value) > _LONGEST:
        raise refuse(f"the value of {name} is longer than {_LONGEST} characters")
    return value


def check_free(dataset: Dataset, names: Iterable[str]) -> None:
    """Refuse tags that would hide a column."""
    for name in names:
        field = dataset.vocabulary.fields.get(name)
        if name == "class" or name in dataset.vocabulary.pending_classes or (field and field.kind != "tag"):
            raise refuse(f"{name} is a column of {dataset.name} already", hint="give the tag another name")


Values = Mapping[bytes, Mapping[str, str | None]]
"""Tags by a file's path below the root and their names; no value takes one away."""


def put_tags(store: Store, dataset: str, values: Values) -> Values:
    """Give many files tags of their own in one generation; return what they had before."""
    rows: list[tuple[bytes, str, str | None]] = []
    for path, tags in values.items():
        rows += [(path, name, value) for name, value in tags.items()]
    if not rows:
        return {}
    with store.writing(dataset) as draft:
        with open_dataset(store, dataset) as opened:
            check_free(opened, {name for _, name, _ in rows})
        table = pa.table(
            {
                "path": pa.array([path for path, _, _ in rows], pa.binary()),
                "folder": pa.array([path[: path.rfind(b"/") + 1] for path, _, _ in rows], pa.binary()),
                "name": pa.array([name for _, name, _ in rows], pa.string()),
                "value": pa.array([value for _, _, value in rows], pa.string()),
            }
        )
        with store.amending(dataset, draft) as connection:
            put_rows(connection, "CREATE TEMP TABLE given AS", table)
            connection.execute(_ASKED)
            earlier = connection.execute(_EARLIER).fetchall()
            connection.execute("DELETE FROM tag USING asked a WHERE tag.file = a.file AND tag.name = a.name")
            connection.execute("INSERT INTO tag SELECT file, name, value FROM asked WHERE value IS NOT NULL")
            _keep(store, dataset, connection)
    before: dict[bytes, dict[str, str | None]] = {}
    for path, name, value in earlier:
        before.setdefault(bytes(path), {})[name] = value
    return before


_ASKED = f"""CREATE TEMP TABLE asked AS SELECT f.id AS file, g.path, g.name, g.value
    FROM given g JOIN directory d ON coalesce(d.raw, encode(d.path)) = g.folder
    JOIN file f ON f.dir = d.id AND {PATH_BYTES} = g.path"""
_EARLIER = """SELECT a.path, a.name, t.value FROM asked a
    LEFT JOIN tag t ON t.file = a.file AND t.name = a.name"""


def tag(store: Store, dataset: str, filter_text: str, name: str, value: str) -> int:
    """Give a tag to all files that a filter chooses, or take it away; return how many they are."""
    with store.writing(dataset) as draft:
        # Within the lock: what is chosen must be what is copied.
        with open_dataset(store, dataset) as opened:
            check_free(opened, [name])
            condition = opened.condition(filter_text)
            query = f"SELECT f.id FROM {source_of(condition)}"
            rows = opened.connection.execute(query, list(condition.values)).fetchall()
        if not rows:
            return 0
        with store.amending(dataset, draft) as connection:
            put_rows(connection, "CREATE TEMP TABLE chosen AS", pa.table({"file": [row[0] for row in rows]}))
            connection.execute("DELETE FROM tag WHERE name = ? AND file IN (SELECT file FROM chosen)", [name])
            if value:
                connection.execute("INSERT INTO tag SELECT file, ?, ? FROM chosen", [name, value])
            _keep(store, dataset, connection)
    return len(rows)


def _keep(store: Store, dataset: str, connection: DuckDBPyConnection) -> None:
    """Note the tags of a generation that is being built, and make what finds them."""
    journal = store.tag_journal(dataset)
    journal.load(connection)
    journal.note(connection, roots_of_meta(meta_of(connection)).key)
    bitmaps.build_tags(connection)
