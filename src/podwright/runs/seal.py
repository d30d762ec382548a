"""Closing a run's folder: metrics and series become a Parquet file each, the record is written out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

from podwright.files.locks import try_lock
from podwright.files.whole import write_whole
from podwright.pilot.protocol import record_folders, series_files
from podwright.runs.folder import RunFolder
from podwright.runs.metrics import METRICS_FILE, write_metrics
from podwright.runs.record import Record
from podwright.runs.series import SERIES_FILE, ToldValue, of_lines, write_series


def prepare() -> None:
    """Load what sealing needs, in a thread while a run is at work, and not when somebody waits for its end."""
    with suppress(ImportError):
        import pyarrow.parquet  # noqa: F401


def seal(folder: RunFolder, record: Record, of_files: Sequence[ToldValue] = ()) -> bool:
    """Seal the folder once, by whoever comes first; return False when somebody else is at it.

    `of_files` are values that were read from event files: what ranks seemed to tell under their names was a guess.
    JSON lines go only after Parquet is on disk.
    """
    with try_lock(folder.path / "seal.lock") as is_held:
        if is_held and not folder.is_sealed:
            write_metrics(folder.path / METRICS_FILE, folder.sample_tail().rows())
            write_series(folder.path / SERIES_FILE, _series(folder, of_files))
            write_whole(folder.path / "record.json", json.dumps(record.as_json(), indent=2).encode() + b"\n")
            for _, _, path in record_folders(str(folder.record_path)):
                Path(path, "metrics.jsonl").unlink(missing_ok=True)
                for _, series in series_files(path):
                    Path(series).unlink(missing_ok=True)
        return is_held


def _series(folder: RunFolder, of_files: Sequence[ToldValue]) -> Iterator[ToldValue]:
    of_ranks = of_lines(folder.record_path)
    if not of_files:
        return of_ranks
    names = {value.name for value in of_files}
    return chain((value for value in of_ranks if value.name not in names), of_files)
