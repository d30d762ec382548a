"""Parquet files in a run's folder: written in batches, read in batches, whatever somebody made of them.

A run's program can reach its folder. A file that is damaged, or is no plain file, is said to be so in words.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, compress, islice
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from podwright.files.untrusted import open_untrusted
from podwright.files.whole import whole_file

BATCH_ROWS = 8192
_CODES = {"float64": "d", "int32": "i", "int64": "q"}
"""Arrow's types of numbers, as Python's `array` calls them."""


class Column(NamedTuple):
    """A column of a file: its name, and its type as Arrow calls it."""

    name: str
    type: str
    may_be_none: bool = False


class Unreadable(OSError):
    """A file that cannot be read, with the reason in words."""


def write_rows(path: Path, columns: Sequence[Column], rows: Iterable[tuple[Any, ...]]) -> None:
    """Write rows as they come, holding one batch at a time; no file where there is none."""
    rows = iter(rows)
    batch = list(islice(rows, BATCH_ROWS))
    if not batch:
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = [pa.type_for_alias(column.type) for column in columns]
    schema = pa.schema([(column.name, type) for column, type in zip(columns, types, strict=True)])
    texts = [column.name for column in columns if column.type == "string"]
    options = {"compression": "zstd", "use_dictionary": texts}
    with whole_file(path) as file, pq.ParquetWriter(file, schema, **options) as writer:
        while batch:
            arrays = [_array(column, values) for column, values in zip(columns, zip(*batch, strict=True), strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            batch = list(islice(rows, BATCH_ROWS))


def _array(column: Column, values: tuple[Any, ...]) -> Any:
    """Return Arrow's array of values, from buffers.

    `pa.array` imports pandas wherever that is installed: a third of a second at the end of every run.
    """
    import pyarrow as pa

    count = len(values)
    if column.type == "string":
        texts = [value.encode() for value in values]
        offsets = array("i", accumulate(map(len, texts), initial=0))
        return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))])
    validity = None
    if None in values:
        validity = pa.py_buffer(_bits([value is not None for value in values]))
        values = tuple(value or 0 for value in values)
    numbers = array(_CODES[column.type], values)
    return pa.Array.from_buffers(pa.type_for_alias(column.type), count, [validity, pa.py_buffer(numbers)])


def _bits(flags: Sequence[bool]) -> bytes:
    """Return flags as Arrow has them: eight a byte, the first in the lowest bit."""
    bits = bytearray(-(-len(flags) // 8))
    for place, flag in enumerate(flags):
        if flag:
            bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def read_rows(path: Path, columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, holding one batch at a time; `Unreadable` says what is wrong with any other file.

    A row that lacks a value, or has a number that is none, is left out.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [column.name for column in columns]
    try:
        with open_untrusted(path.parent, path.name) as raw, pq.ParquetFile(raw) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                yield from _whole_rows(batch, columns)
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError) as error:
        raise Unreadable(f"{path.name} cannot be read: {_reason(error)}") from None


def _whole_rows(batch: Any, columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a batch, each value of its column's type, without those that nobody could use.

    In plain Python, since the rows become that anyway: Arrow's own functions import pandas where it is installed.
    """
    lists = [_values(batch.column(column.name), column) for column in columns]
    rows = zip(*lists, strict=True)
    needed = [not column.may_be_none for column in columns]
    if all(map(_is_whole, compress(lists, needed))):
        return rows
    return (row for row in rows if _is_whole(tuple(compress(row, needed))))


def _values(values: Any, column: Column) -> list[Any]:
    import pyarrow as pa

    if values.type != pa.type_for_alias(column.type):
        values = values.cast(column.type)
    return list(values.to_pylist())


def _is_whole(values: Sequence[Any]) -> bool:
    """Return whether all are there, and every number is one."""
    if None in values:
        return False
    return all(isfinite(value) for value in values if isinstance(value, float))


def _reason(error: BaseException) -> str:
    """Return the first line of what a library says; its others tell where in its own code."""
    text = getattr(error, "strerror", None) or str(error)
    lines = str(text).splitlines() or [type(error).__name__]
    return lines[0]
