"""Parquet files in a run's folder: written in batches, read in batches, whatever somebody made of them.

A run's program can reach its folder. A file that is damaged, or is no plain file, is said to be so in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from podwright.runs.files import open_untrusted, whole_file

BATCH_ROWS = 8192


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
            arrays = [pa.array(values, type) for values, type in zip(zip(*batch, strict=True), types, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            batch = list(islice(rows, BATCH_ROWS))


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
                arrays = _whole_rows(batch, columns)
                yield from zip(*(array.to_pylist() for array in arrays), strict=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError) as error:
        raise Unreadable(f"{path.name} cannot be read: {_reason(error)}") from None


def _whole_rows(batch: Any, columns: Sequence[Column]) -> list[Any]:
    """Return the columns of a batch, each of its type, without rows that nobody could use."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrays = [batch.column(column.name).cast(column.type) for column in columns]
    is_whole = pa.array([True] * batch.num_rows)
    for column, array in zip(columns, arrays, strict=True):
        is_there = array.is_valid()
        if pa.types.is_floating(array.type):
            is_there = pc.fill_null(pc.is_finite(array), column.may_be_none)
        if not column.may_be_none:
            is_whole = pc.and_(is_whole, is_there)
    return [array.filter(is_whole) for array in arrays]


def _reason(error: BaseException) -> str:
    """Return the first line of what a library says; its others tell where in its own code."""
    text = getattr(error, "strerror", None) or str(error)
    lines = str(text).splitlines() or [type(error).__name__]
    return lines[0]
