"""Runs that have ended and whose job has not: whoever looks ends it, once the record is in."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from podwright.engines.base import Engine
from podwright.pilot.protocol import CLOSED, record_folders
from podwright.runs import Record, RunFolder
from podwright.spec.problems import Refusal

IN_S = 60.0
"""After its end all that a run has to say is said, even by a pilot that nobody saw closing its record."""
LEAVE_S = 15.0
"""How long a job whose pilots have all closed may take to leave by itself, with the exit code that others wait for."""


def clean_ended(engine: Engine, folders: Sequence[RunFolder]) -> None:
    """End what the engine still has of runs that have ended: the last of the records first, as it may go with it."""
    if not engine.remains or not folders:
        return
    with suppress(Refusal):  # a target that is away: the next look cleans them
        engine.collect(folders)
        for folder in folders:
            engine.clean(folder)


def is_in(folder: RunFolder, record: Record, at_work: bool, now: float) -> bool:
    """Return whether nothing more of the record can come; `at_work`: its engine says that it runs."""
    since_s = now - (record.ended_at or record.created_at)
    if since_s > IN_S:
        return True
    return since_s > LEAVE_S and (not at_work or _is_closed(folder, folder.asked.allocated_nodes))


def _is_closed(folder: RunFolder, nodes: int) -> bool:
    """Return whether the last pilot of every node has closed its record."""
    last = {node: path for node, _, path in record_folders(str(folder.record_path))}
    return len(last) == nodes and all(Path(path, CLOSED).exists() for path in last.values())
