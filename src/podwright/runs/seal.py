"""Closing a run's folder: metrics become one Parquet file, the record is written out."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from podwright.pilot.protocol import record_folders
from podwright.runs.folder import RunFolder
from podwright.runs.record import Record

COLUMNS = ("t", "node", "restart", "retry", "name", "value")


def prepare() -> None:
    """Load what sealing needs, in a thread while a run is at work, and not when somebody waits for its end."""
    with suppress(ImportError):
        import pyarrow.parquet  # noqa: F401


def seal(folder: RunFolder, record: Record) -> bool:
    """Once, by whoever comes first; False when somebody else is at it. JSON lines go only after Parquet is on disk."""
    lock = os.open(folder.path / "seal.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return False
    try:
        if not folder.is_sealed:
            _write_metrics(folder)
            write_whole(folder.path / "record.json", json.dumps(record.as_json(), indent=2).encode() + b"\n")
            for _, _, path in record_folders(str(folder.record_path)):
                Path(path, "metrics.jsonl").unlink(missing_ok=True)
        return True
    finally:
        os.close(lock)


def _write_metrics(folder: RunFolder) -> None:
    rows = [
        (row["t"], row["n"], row["e"][0], row["e"][1], name, float(value))
        for row in folder.samples()
        for name, value in row["v"].items()
    ]
    if not rows:
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*rows, strict=True))
    types = (pa.float64(), pa.int32(), pa.int64(), pa.int32(), pa.string(), pa.float64())
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
    arrays[4] = arrays[4].dictionary_encode()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, names=list(COLUMNS)), sink, compression="zstd")
    write_whole(folder.path / "metrics.parquet", sink.getvalue().to_pybytes())


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The samples of a sealed run, in the shape the pilots wrote them."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = [table[name].to_pylist() for name in COLUMNS]
    row: dict[str, Any] = {}
    for t, node, restart, retry, name, value in zip(*columns, strict=True):
        if not row or row["t"] != t or row["n"] != node or row["e"] != [restart, retry]:
            if row:
                yield row
            row = {"t": t, "n": node, "e": [restart, retry], "v": {}}
        row["v"][name] = value
    if row:
        yield row


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """The whole file or none of it, whatever happens meanwhile."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
