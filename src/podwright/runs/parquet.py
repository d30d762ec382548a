"""Parquet files in a run's folder: written in batches, read in batches, whatever somebody made of them.

A run's program can reach its folder. A file that is damaged, or is no plain file, is said to be so in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from podwright.runs.files import open_untrusted, whole_file

BATCH_ROWS = 16_384


class Column(NamedTuple):
    """A column of a file: its name, and its type as Arrow calls it."""

    name: str
    type: str


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
    with whole_file(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch:
            arrays = [pa.array(values, type) for values, type in zip(zip(*batch, strict=True), types, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            batch = list(islice(rows, BATCH_ROWS))


def read_rows(path: Path, columns: Sequence[Column]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, holding one batch at a time; `Unreadable` says what is wrong with any other file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [column.name for column in columns]
    try:
        with open_untrusted(path.parent, path.name) as raw, pq.ParquetFile(raw) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=names):
                yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError, OverflowError) as error:
        raise Unreadable(f"{path.name} cannot be read: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    """Return the first line of what a library says; its others tell where in its own code."""
    text = getattr(error, "strerror", None) or str(error)
    lines = str(text).splitlines() or [type(error).__name__]
    return lines[0]
