"""The rows of a generation as ClickHouse's TabSeparated has them: DuckDB writes the text, whole columns at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright.data.catalog.schema import class_column, quoted
from podwright.data.tree.layouts import Layout

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_AT_ONCE = 50_000
_ESCAPES = (("'\\'", "'\\\\'"), ("chr(9)", "'\\t'"), ("chr(10)", "'\\n'"), ("chr(13)", "'\\r'"))
_NONE = "'\\N'"


def tab_separated(connection: DuckDBPyConnection, layout: Layout, classes: int) -> Iterator[bytes]:
    """Yield the rows of the table `chosen`: `id` in the generation `own`, `number` from 0, and `readable`."""
    answer = connection.execute(rows_query(layout, classes))
    while lines := answer.fetchmany(_AT_ONCE):
        yield "".join(line for (line,) in lines).encode()


def rows_query(layout: Layout, classes: int) -> str:
    """Return the query for the lines, with cells in the order of the dialect's columns.

    The server sorts rows by itself: sorted here, DuckDB would hold the text of all of them before the first is sent.
    """
    cells = ["c.number::VARCHAR", _text("d.path"), _bytes("d.raw"), _text("f.name"), _bytes("f.raw")]
    cells += [_text("f.ext"), _text("f.type"), "f.size::VARCHAR", "f.mtime_ns::VARCHAR"]
    cells += [_text("f.owner"), _text('f."group"'), "f.mode::VARCHAR"]
    # Checksums, labels and tags tell of what is in a file.
    cells.append(_text("CASE WHEN c.readable THEN f.sha256 END"))
    for column in layout.columns:
        cells.append(_text(f"f.{quoted(column.name)}::VARCHAR"))
    labels, counts = "", [_NONE] * classes
    counted = ["'0'", _NONE, _NONE]
    if classes:
        labels = " LEFT JOIN own.label l ON l.file = f.id AND c.readable"
        counted = ["(l.file IS NOT NULL)::INT::VARCHAR", _text("l.why"), _text("l.unknown::VARCHAR")]
        counts = [_text(f"l.{class_column(index)}::VARCHAR") for index in range(classes)]
    cells += [*counted, *counts, *(f"coalesce(t.{part}, '[]')" for part in ("names", "texts", "numbers"))]
    line = " || chr(9) || ".join(cells)
    return f"""SELECT {line} || chr(10) FROM chosen c
        JOIN own.file f ON f.id = c.id JOIN own.directory d ON d.id = f.dir{labels}
        LEFT JOIN ({_tags()}) t ON t.file = f.id AND c.readable"""


def _tags() -> str:
    number = "TRY_CAST(value AS DOUBLE)"
    # DuckDB takes what is no number for greater than all others.
    number = f"coalesce((CASE WHEN isnan({number}) THEN 'inf'::DOUBLE ELSE {number} END)::VARCHAR, 'NULL')"
    lists = [f"'[' || string_agg({item}, ',' ORDER BY name) || ']'" for item in (_item("name"), _item("value"), number)]
    return f"SELECT file, {lists[0]} AS names, {lists[1]} AS texts, {lists[2]} AS numbers FROM own.tag GROUP BY file"


def _escaped(sql: str) -> str:
    for plain, escaped in _ESCAPES:
        sql = f"replace({sql}, {plain}, {escaped})"
    return sql


def _text(sql: str) -> str:
    return f"coalesce({_escaped(sql)}, {_NONE})"


def _item(sql: str) -> str:
    return f"chr(39) || replace({_escaped(sql)}, chr(39), '\\' || chr(39)) || chr(39)"


def _bytes(sql: str) -> str:
    return f"coalesce(regexp_replace(hex({sql}), '(..)', '\\\\x\\1', 'g'), {_NONE})"
