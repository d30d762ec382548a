"""Closing a run's folder: metrics become one Parquet file, the record is written out."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from podwright.pilot.protocol import record_folders
from podwright.runs.files import write_whole
from podwright.runs.folder import RunFolder
from podwright.runs.locks import try_lock
from podwright.runs.metrics import write_metrics
from podwright.runs.record import Record


def prepare() -> None:
    """Load what sealing needs, in a thread while a run is at work, and not when somebody waits for its end."""
    with suppress(ImportError):
        import pyarrow.parquet  # noqa: F401


def seal(folder: RunFolder, record: Record) -> bool:
    """Seal the folder once, by whoever comes first; return False when somebody else is at it.

    JSON lines go only after Parquet is on disk.
    """
    with try_lock(folder.path / "seal.lock") as is_held:
        if is_held and not folder.is_sealed:
            write_metrics(folder.path / "metrics.parquet", folder.sample_tail().read())
            write_whole(folder.path / "record.json", json.dumps(record.as_json(), indent=2).encode() + b"\n")
            for _, _, path in record_folders(str(folder.record_path)):
                Path(path, "metrics.jsonl").unlink(missing_ok=True)
        return is_held
