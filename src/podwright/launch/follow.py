"""Following runs: bring the record in, ask the engine about many at once, settle what is over, seal it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

from podwright.engines import ENGINES, Engine
from podwright.engines.base import Seen
from podwright.launch.journal import note
from podwright.launch.start import resubmit, submitting
from podwright.runs import SETTLED, Home, Record, RunFolder
from podwright.runs.seal import seal
from podwright.runs.store import CREATE_S, NEVER_SUBMITTED
from podwright.spec.problems import Refusal

FINISH_S = 600.0
"""How long after its creation a run whose client died before submitting is still submitted by another."""


def reconcile(home: Home, ids: Iterable[str]) -> list[Record]:
    """The truth about these runs now; one question to each engine, however many runs it has."""
    folders = [home.folder(run_id) for run_id in ids]
    parents = [folder for folder in folders if folder.asked.points]
    singles = [folder for folder in folders if not folder.asked.points]
    by_engine: dict[str, list[RunFolder]] = {}
    for folder in singles:
        by_engine.setdefault(folder.asked.target, []).append(folder)
    records = {}
    for target, some in by_engine.items():
        records.update(_reconcile_on(home, ENGINES[target](), some))
    for folder in parents:
        points = [f"{folder.id}-{i + 1}" for i in range(folder.asked.points)]
        reconcile(home, [point for point in points if home.has(point)])
        records[folder.id] = home.read(folder.id)
    with suppress(Refusal):
        home.keep(records.values())
    return [records[folder.id] for folder in folders]


def _reconcile_on(home: Home, engine: Engine, folders: Sequence[RunFolder]) -> dict[str, Record]:
    """The engine is asked before the record is read: a run that ends in between is found ended, never lost."""
    live = [folder for folder in folders if not folder.is_sealed]
    seen = engine.status(live) if live else {}
    records = {}
    for folder in folders:
        if not folder.is_sealed:
            _bring_in(engine, folder)
        record = home.read(folder.id)
        if record.state not in SETTLED:
            record = _judge(home, engine, folder, record, seen[folder.id])
        if record.state in SETTLED and not folder.is_sealed and engine.status([folder])[folder.id].state == "gone":
            with suppress(OSError):
                seal(folder, record)
        records[folder.id] = record
    return records


def _bring_in(engine: Engine, folder: RunFolder) -> None:
    gaps = engine.collect(folder)
    known = {event["text"] for event in folder.client_events() if event["k"] == "gap"} if gaps else set()
    for words in gaps:
        if words not in known:
            note(folder, "gap", text=words)


def _judge(home: Home, engine: Engine, folder: RunFolder, record: Record, seen: Seen) -> Record:
    """A run the engine does not know: never submitted, or lost."""
    if seen.state != "gone":
        return record
    events = {event["k"] for event in folder.client_events()}
    if "submitted" not in events:
        return record if "lost" in events else _finish_submit(home, engine, folder, record)
    if record.state != "lost":
        engine.clean(folder)
        note(folder, "lost", why=seen.reason)
    return home.read(folder.id)


def _finish_submit(home: Home, engine: Engine, folder: RunFolder, record: Record) -> Record:
    with submitting(folder) as alone:
        if not alone:
            return record  # its client is at it
    siblings = _siblings(home, folder)
    if time.time() - record.created_at < FINISH_S and siblings and resubmit(engine, siblings):
        return home.read(folder.id)
    if time.time() - record.created_at < CREATE_S:
        return record  # its client may still be writing the other points
    note(folder, "lost", why=NEVER_SUBMITTED)
    return home.read(folder.id)


def _siblings(home: Home, folder: RunFolder) -> list[RunFolder]:
    """All parts of the same job; none when the client died before it had written them all."""
    asked = folder.asked
    if asked.parent is None:
        return [folder]
    parent = home.folder(asked.parent)
    ids = [f"{asked.parent}-{i + 1}" for i in range(parent.asked.points)]
    return [home.folder(one) for one in ids] if all(home.has(one) for one in ids) else []
