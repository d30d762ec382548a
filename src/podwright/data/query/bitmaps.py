"""Row-aligned indexes of a generation, made once when it is built and kept in the same file.

bitmap    of a field with few values: the rows that hold each value, with their number and bytes (a facet);
          without a value: the rows that hold any
span      of a field of numbers: its rows in the order of the numbers, cut into blocks of 65,536; the blocks themselves
          lie in tables of their own, few in each
trigram   of paths: the blocks of 32 rows in which three letters stand in a row, or one letter several times

Sets that are asked for one by one are kept as they are: of compressed ones DuckDB reads 2,048 for one.

Rows are places in the table `file`. Sets of them are Roaring bitmaps: sparse ones are lists, dense ones plain bits.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from podwright.data.catalog.files import put_rows
from podwright.data.catalog.schema import class_column, quoted
from podwright.data.query.trigrams import PathBlocks
from podwright.data.tree.layouts import Layout

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SET = "BLOB USING COMPRESSION uncompressed"
TABLES = (
    f"CREATE TABLE bitmap (field VARCHAR, value VARCHAR, files BIGINT, bytes BIGINT, rows {_SET})",
    "CREATE TABLE span (field VARCHAR, least BIGINT, most BIGINT, part INTEGER, place INTEGER)",
    f"CREATE TABLE trigram (letters INTEGER, blocks {_SET})",
)
TEXTS = ("ext", "type", "owner", "group", "mode")
NUMBERS = {"size": "size", "mtime": "mtime_ns"}
MAX_VALUES = 1000
"""A field with more values has no bitmaps of them: they would be larger than the column."""
SPAN_ROWS = 65_536
_CHUNK = 1 << 20
Rows = np.ndarray[Any, np.dtype[np.uint32]]


def tag_field(name: str) -> str:
    """Return the field under which the bitmaps of a tag stand."""
    return f"tag:{name}"


def class_field(index: int) -> str:
    """Return the field under which the bitmaps of a class stand."""
    return f"class:{index}"


def bitmap_of(rows: Rows) -> BitMap:
    """Return the set of rows, which are in their order."""
    # By way of an array, which the library takes as it is; of anything else it asks for element by element.
    bits = BitMap(array("I", rows.tobytes()))
    bits.run_optimize()
    return bits


def runs_of(rows: BitMap) -> tuple[Rows, Rows]:
    """Return where rows that follow each other begin, and where they have ended."""
    places = np.asarray(rows.to_array(), np.uint32)
    begins = np.diff(places, prepend=places[:1]) != 1
    ends = np.diff(places, append=places[-1:]) != 1
    return places[begins], places[ends] + np.uint32(1)


def build(connection: DuckDBPyConnection, layout: Layout, classes: int) -> None:
    """Make the indexes of the generation that a connection has open, which has none yet."""
    for statement in TABLES:
        connection.execute(statement)
    with connection.cursor() as beside, ThreadPoolExecutor(1) as pool:
        # Of all indexes trigrams take half the time; they have a connection and a table of their own.
        trigrams = pool.submit(_build_trigrams, beside)
        _build_bitmaps(connection, layout)
        build_classes(connection, classes)
        build_tags(connection)
        _insert_spans(connection, chain.from_iterable(_spans(connection, *names) for names in _number_columns(layout)))
        trigrams.result()


def blocks_table(chunk: int) -> str:
    """Return the table of a part of the blocks."""
    return f"span_blocks_{chunk}"


def _number_columns(layout: Layout) -> Iterator[tuple[str, str]]:
    yield from NUMBERS.items()
    for column in layout.columns:
        if column.kind == "whole":
            yield column.name, column.name


def text_fields(layout: Layout) -> list[str]:
    """Return the fields that get a bitmap for each of their values, where these are few."""
    return [*TEXTS, *(column.name for column in layout.columns if column.kind == "text")]


class _Field:
    """Collects the rows of each value of one field, chunk by chunk."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: dict[str, list[Rows]] = {}
        self.bytes: dict[str, int] = {}
        self.many = False

    def take(self, values: pa.ChunkedArray, sizes: np.ndarray[Any, Any], first: int) -> None:
        if self.many:
            return
        coded = values.combine_chunks().dictionary_encode()
        names = coded.dictionary.to_pylist()
        if len(names) > MAX_VALUES:
            self._give_up()
            return
        # The last code is that of rows without a value: they sort behind all others.
        codes = coded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False).astype(np.uint16)
        order = np.argsort(codes, kind="stable").astype(np.uint32)
        ends = np.cumsum(np.bincount(codes, minlength=len(names) + 1))
        value_bytes = np.bincount(codes, weights=sizes, minlength=len(names) + 1)
        for code, name in enumerate(names):
            start = ends[code - 1] if code else 0
            self.rows.setdefault(name, []).append(order[start : ends[code]] + np.uint32(first))
            self.bytes[name] = self.bytes.get(name, 0) + int(value_bytes[code])
        if len(self.rows) > MAX_VALUES:
            self._give_up()

    def _give_up(self) -> None:
        self.many = True
        self.rows.clear()

    def records(self) -> Iterator[tuple[str, str | None, int, int, bytes]]:
        every = BitMap()
        for value in sorted(self.rows):
            bits = bitmap_of(np.concatenate(self.rows[value]))
            every |= bits
            yield self.name, value, len(bits), self.bytes[value], bits.serialize()
        if not self.many:
            every.run_optimize()
            yield self.name, None, len(every), sum(self.bytes.values()), every.serialize()


def _build_bitmaps(connection: DuckDBPyConnection, layout: Layout) -> None:
    names = text_fields(layout)
    columns = ", ".join(f"{quoted(name)}::VARCHAR AS {quoted(name)}" for name in names)
    fields = [_Field(name) for name in names]
    first = 0
    reader = connection.sql(f"SELECT size, {columns} FROM file").to_arrow_reader(_CHUNK)
    for batch in reader:
        table = pa.Table.from_batches([batch])
        sizes = table["size"].to_numpy()
        for field in fields:
            field.take(table[field.name], sizes, first)
        first += len(table)
    _insert(connection, "bitmap", chain.from_iterable(field.records() for field in fields))


def build_classes(connection: DuckDBPyConnection, classes: int) -> None:
    """Make two bitmaps for each class: the rows whose label was counted, and of them those that hold it."""
    connection.execute("DELETE FROM bitmap WHERE starts_with(field, 'class:')")
    if not classes:
        return
    columns = ", ".join(f"l.{class_column(index)} > 0 AS {class_column(index)}" for index in range(classes))
    query = f"""SELECT l.file - (SELECT min(id) FROM file) AS row, f.size, {columns}
        FROM label l JOIN file f ON f.id = l.file WHERE l.why IS NULL ORDER BY l.file"""
    table = connection.sql(query).to_arrow_table()
    rows = table["row"].to_numpy().astype(np.uint32)
    sizes = table["size"].to_numpy()
    records: list[tuple[str, str | None, int, int, bytes]] = []
    for index in range(classes):
        holds = table[class_column(index)].to_numpy()
        present = bitmap_of(rows[holds])
        name = class_field(index)
        records.append((name, "present", len(present), int(sizes[holds].sum()), present.serialize()))
        records.append((name, None, len(rows), int(sizes.sum()), bitmap_of(rows).serialize()))
    _insert(connection, "bitmap", iter(records))


def build_tags(connection: DuckDBPyConnection) -> None:
    """Make a bitmap for each value of a tag, and one for all files that have it."""
    connection.execute("DELETE FROM bitmap WHERE starts_with(field, 'tag:')")
    query = """SELECT DISTINCT t.name, t.value, t.file - (SELECT min(id) FROM file) AS row, f.size
        FROM tag t JOIN file f ON f.id = t.file ORDER BY ALL"""
    rows_of: dict[str, dict[str, list[int]]] = {}
    sizes: dict[tuple[str, str], int] = {}
    for name, value, row, size in connection.execute(query).fetchall():
        rows_of.setdefault(name, {}).setdefault(value, []).append(row)
        sizes[name, value] = sizes.get((name, value), 0) + size
    records: list[tuple[str, str | None, int, int, bytes]] = []
    for name, values in rows_of.items():
        every = BitMap()
        for value, rows in values.items():
            bits = BitMap(rows)
            every |= bits
            if len(values) <= MAX_VALUES:
                records.append((tag_field(name), value, len(bits), sizes[name, value], bits.serialize()))
        total = sum(size for (of, _), size in sizes.items() if of == name)
        records.append((tag_field(name), None, len(every), total, every.serialize()))
    _insert(connection, "bitmap", iter(records))


def _spans(
    connection: DuckDBPyConnection, field: str, column: str
) -> Iterator[tuple[str, int | None, int | None, bytes, bytes]]:
    """Yield the blocks of a field in the order of its numbers: how far each row is above the block's least one.

    The last has no numbers: it is the set of all rows that have one.
    """
    every = BitMap()
    name = quoted(column)
    query = f"SELECT {name} AS value, rowid AS row FROM file WHERE {name} IS NOT NULL ORDER BY value, row"
    # A cursor of its own: blocks are written while others are still to be read.
    reader = connection.cursor().sql(query).to_arrow_reader(SPAN_ROWS)
    for batch in reader:
        values, rows = batch["value"].to_numpy(), batch["row"].to_numpy().astype(np.uint32)
        if not len(values):
            continue
        least, most = int(values[0]), int(values[-1])
        order = np.argsort(rows)
        bits = bitmap_of(rows[order])
        every |= bits
        above_bytes = b""
        if most > least:
            # Without a sign: between the least and the most number there may be more than a signed one holds.
            above = values[order].astype(np.uint64) - np.uint64(least % (1 << 64))
            above_bytes = above.astype(np.min_scalar_type(most - least)).tobytes()
        yield field, least, most, bits.serialize(), above_bytes
    every.run_optimize()
    yield field, None, None, every.serialize(), b""


def _build_trigrams(connection: DuckDBPyConnection) -> None:
    folders = connection.sql("SELECT id, path FROM directory ORDER BY id").to_arrow_table()
    blocks = PathBlocks(folders["id"].to_numpy(), folders["path"])
    seen: dict[int, BitMap] = {}
    reader = connection.cursor().sql("SELECT dir, name FROM file").to_arrow_reader(_CHUNK)
    for batch in reader:
        for letters, places in blocks.take(batch["dir"].to_numpy(), batch["name"]):
            bits = bitmap_of(places)
            seen[letters] = seen[letters] | bits if letters in seen else bits
    _insert(connection, "trigram", ((letters, seen[letters].serialize()) for letters in sorted(seen)))


_TYPES = {
    "bitmap": (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.binary()),
    "span": (pa.string(), pa.int64(), pa.int64(), pa.int32(), pa.int32()),
    "trigram": (pa.int32(), pa.binary()),
}
_BLOCK_TYPES = (pa.binary(), pa.binary())
_HELD_BYTES = 16 << 20
"""Of sets of rows that are held before they are written: a statement takes milliseconds however few it writes."""
AT_ONCE = 64
"""So many blocks are a table: for one value of a column DuckDB reads 2,048 of them."""


def _insert(connection: DuckDBPyConnection, table: str, records: Iterator[tuple[Any, ...]]) -> None:
    types = _TYPES[table]
    pending: list[tuple[Any, ...]] = []
    pending_bytes = 0
    for record in records:
        pending.append(record)
        pending_bytes += len(record[-1])
        if pending_bytes >= _HELD_BYTES:
            _write(connection, table, pending, types)
            pending, pending_bytes = [], 0
    if pending:
        _write(connection, table, pending, types)


def _insert_spans(connection: DuckDBPyConnection, records: Iterator[tuple[Any, ...]]) -> None:
    for chunk in count():
        blocks = list(islice(records, AT_ONCE))
        if not blocks:
            return
        connection.execute(f"CREATE TABLE {blocks_table(chunk)} (rows BLOB, above BLOB)")
        _write(connection, blocks_table(chunk), [record[3:] for record in blocks], _BLOCK_TYPES)
        heads = [(*record[:3], chunk, row_id) for row_id, record in enumerate(blocks)]
        _write(connection, "span", heads, _TYPES["span"])


def _write(
    connection: DuckDBPyConnection, table: str, records: list[tuple[Any, ...]], types: tuple[pa.DataType, ...]
) -> None:
    columns = zip(*records, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    put_rows(connection, f"INSERT INTO {table}", pa.table(arrays, names=[f"c{at}" for at in range(len(arrays))]))
