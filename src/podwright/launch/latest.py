"""What is known of all runs at work just now: what their nodes began with, and their last readings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.files.untrusted import open_untrusted
from podwright.launch.finding import find, recent
from podwright.launch.run import records_anyway
from podwright.pilot.protocol import parse_line, record_folders
from podwright.runs.event_reader import parse_event, parse_sample
from podwright.runs.events import Event, PilotStarted, RankStarted, ResultTold, Sample

if TYPE_CHECKING:
    from podwright.launch.session import Session
    from podwright.runs import Record

TAIL_BYTES = 96 * 1024
"""The readings of about a minute from a node with eight GPUs; the slowest come every 30 seconds."""


@dataclass(frozen=True)
class Latest:
    """A run that has not ended, with the latest that its nodes left."""

    record: Record
    events: list[Event]
    samples: list[Sample]


def runs_at_work(session: Session) -> list[Latest]:
    """Return the runs that have not ended, points by themselves, each with the latest readings of its nodes."""
    parts: list[Record] = []
    for record in recent(session, limit=0):
        if not record.is_final:
            parent, points = records_anyway(find(session, record.id))
            parts += points or [parent]
    return [latest_of(part) for part in parts if not part.is_final]


def latest_of(record: Record) -> Latest:
    """Return what the nodes of a run found when they began, where the ranks are, what these told and measured last.

    Only the ends of files are read: a run of days has hundreds of megabytes.
    """
    events: list[Event] = []
    samples: list[Sample] = []
    for folder in _newest(Path(record.folder) / "record"):
        path = folder / "events.jsonl"
        for row in (*_rows_of(path, from_end=False), *_rows_of(path, from_end=True)):
            event = parse_event(row)
            if isinstance(event, (PilotStarted, RankStarted, ResultTold)):
                events.append(event)
        samples += filter(None, map(parse_sample, _rows_of(folder / "metrics.jsonl", from_end=True)))
    return Latest(record, events, samples)


def _newest(record_path: Path) -> Iterable[Path]:
    """Return the folder of the latest pilot of each node."""
    return {node: Path(folder) for node, _, folder in record_folders(str(record_path))}.values()


def _rows_of(path: Path, from_end: bool) -> Iterator[object]:
    """Yield the rows at the beginning or at the end of a file."""
    try:
        with open_untrusted(path.parent, path.name) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES) if from_end else 0)
            data = file.read(TAIL_BYTES)
    except OSError:
        return
    yield from map(parse_line, data.splitlines())
