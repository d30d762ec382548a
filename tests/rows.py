"""The rows of a run's record as its files have them: what tests of pilots and engines look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from podwright.pilot.protocol import record_folders, rows_of


def event_rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of all writers, pilots first."""
    paths = [Path(path, name) for _, _, path in record_folders(str(folder / "record")) for name in PILOTS]
    paths += [folder / name for name in ("engine.jsonl", "client.jsonl")]
    rows: list[dict[str, Any]] = []
    for path in paths:
        rows += rows_of(str(path))
    return rows


PILOTS = ("events.jsonl", "ship.jsonl")
