"""Following runs: bring the record in, ask the engine about many at once, settle what is over, seal it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from podwright.engines import Engine
from podwright.engines.base import Seen
from podwright.launch.journal import note
from podwright.launch.start import resubmit, submitting
from podwright.launch.targets import engine_of
from podwright.runs import SETTLED, Home, Record, RunFolder
from podwright.runs.events import FoundGone, FoundIdle, Gap
from podwright.runs.layout import point_ids
from podwright.runs.seal import seal
from podwright.runs.store import CREATE_S, NEVER_SUBMITTED
from podwright.spec.problems import Refusal

ENDS = {"succeeded": "failed", "failed": "failed", "cancelled": "terminated"}
"""An engine's outcome as an end. Without the pilots' own last word, success cannot be believed."""
RESULTS_BYTES = 64 << 20
GIVEN_S = 5.0
"""What was seen of a job before it was given again, with another part of the run, says nothing of it now."""
NOT_UNDERSTOOD = "could not be understood"
FINISH_S = 600.0
"""How long after its creation a run whose client died before submitting is still submitted by another."""


def reconcile(home: Home, ids: Iterable[str]) -> list[Record]:
    """The truth about these runs now; one question to each engine, however many runs it has."""
    folders = [home.folder(run_id) for run_id in ids]
    parents = [folder for folder in folders if folder.asked.points]
    singles = [folder for folder in folders if not folder.asked.points]
    records = {}
    for engine, some in _by_engine(singles):
        records.update(_reconcile_on(home, engine, some))
    for folder in parents:
        points = point_ids(folder.id, folder.asked.points)
        reconcile(home, [point for point in points if home.has(point)])
        records[folder.id] = home.read(folder.id)
    with suppress(Refusal):
        home.keep(records.values())
    return [records[folder.id] for folder in folders]


def _by_engine(folders: Sequence[RunFolder]) -> list[tuple[Engine, list[RunFolder]]]:
    """A sealed run needs no engine, but one of its target's is as good as any."""
    found: dict[int, tuple[Engine, list[RunFolder]]] = {}
    for folder in folders:
        engine = engine_of(folder)
        found.setdefault(id(engine), (engine, []))[1].append(folder)
    return list(found.values())


def _reconcile_on(home: Home, engine: Engine, folders: Sequence[RunFolder]) -> dict[str, Record]:
    """The engine is asked before the record is read: a run that ends in between is found ended, never lost."""
    live = [folder for folder in folders if not folder.is_sealed]
    seen = engine.status(live) if live else {}
    gaps = engine.collect(live) if live else {}
    records = {}
    for folder in folders:
        _note_gaps(folder, gaps.get(folder.id, []))
        record = home.read(folder.id)
        _note_left_out(home, folder)
        if not folder.is_sealed and (record.state not in SETTLED or record.stopped_in):
            record = _judge(home, engine, folder, record, seen[folder.id])
        records[folder.id] = record
    settled = [folder for folder in live if records[folder.id].state in SETTLED]
    now = engine.status(settled) if settled else {}
    _close(home, engine, [folder for folder in settled if now[folder.id].state == "gone"], records)
    return records


def _close(home: Home, engine: Engine, folders: Sequence[RunFolder], records: Mapping[str, Record]) -> None:
    """The last of the records and the results come here, in one exchange for all, then the folders are sealed."""
    if not folders:
        return
    gaps = engine.collect(folders)
    try:
        left = engine.fetch(folders, ("results",), RESULTS_BYTES)
    except Refusal:
        return  # a cluster that is away just now: the next look closes them
    for folder in [one for one in folders if one.id in left]:
        _note_gaps(folder, gaps.get(folder.id, []))
        words = "is too large to come by itself: `podwright pull"
        _note_gaps(folder, [f"{name} {words} {folder.id} {name}`" for name in left[folder.id]])
        home.read(folder.id)  # what has just come may hold events that cannot be understood
        _note_left_out(home, folder)
        with suppress(OSError):
            seal(folder, records[folder.id])


def _note_gaps(folder: RunFolder, gaps: Sequence[str]) -> None:
    known = _noted_gaps(folder) if gaps else []
    for gap in gaps:
        if gap not in known:
            note(folder, "gap", text=gap)


def _note_left_out(home: Home, folder: RunFolder) -> None:
    """Say once that events could not be understood; a sealed folder is closed and stays as it is."""
    count = home.left_out(folder.id)
    if not count or folder.is_sealed:
        return
    if any(NOT_UNDERSTOOD in gap for gap in _noted_gaps(folder)):
        return
    if count == 1:
        text = f"1 event {NOT_UNDERSTOOD} and was left out"
    else:
        text = f"{count} events {NOT_UNDERSTOOD} and were left out"
    note(folder, "gap", text=text)


def _noted_gaps(folder: RunFolder) -> list[str]:
    return [event.text for event in folder.client_events() if isinstance(event, Gap)]


def _judge(home: Home, engine: Engine, folder: RunFolder, record: Record, seen: Seen) -> Record:
    """What the engine says of a run whose record has no last word, or one that only the engine can explain."""
    events = {event.kind: event for event in folder.client_events()}
    if "submitted" not in events and seen.handle:
        note(folder, "submitted", handle=seen.handle)  # its client died before it could say so
    elif "submitted" not in events and seen.state == "gone":
        return record if "lost" in events else _finish_submit(home, engine, folder, record)
    if seen.state != "gone":
        return _still_there(home, engine, folder, record, seen)
    if seen.never_began and "cancel" not in events:
        submitted = events.get("submitted")
        given_just_now = submitted is not None and time.time() - submitted.time < GIVEN_S
        if given_just_now or _submit_again(home, engine, folder, record):
            return home.read(folder.id)
    if record.stopped_in and seen.outcome in ("", "cancelled"):
        return record
    open_end = record.stopped_in is None and (record.attempts > 0 or seen.outcome != "cancelled")
    if open_end and _may_lag(engine, folder, record, FoundGone, seen):
        return record
    if seen.outcome in ENDS:
        note(folder, "end", state=ENDS[seen.outcome], reason=seen.reason, code=None)
    elif record.state != "lost":
        engine.clean(folder)
        note(folder, "lost", why=seen.reason)
    return home.read(folder.id)


def _still_there(home: Home, engine: Engine, folder: RunFolder, record: Record, seen: Seen) -> Record:
    """A run that waits says why; one that had begun and waits again was requeued, or suspended."""
    stopped = record.stopped_in or (record.epoch if _is_idle(engine, folder, record, seen) else None)
    if seen.state == "waiting" and stopped:
        note(folder, "requeued", stopped, why=seen.reason)
        return home.read(folder.id)
    if record.stopped_in:
        return replace(record, state="running", reason="it is being stopped", ended_at=None, exit_code=None)
    if record.state == "pending" and seen.reason and seen.reason != record.reason:
        note(folder, "waiting", why=seen.reason)
        return home.read(folder.id)
    return record


def _is_idle(engine: Engine, folder: RunFolder, record: Record, seen: Seen) -> bool:
    """No part of it runs any more, and its pilots could not say so."""
    waits = seen.state == "waiting" and record.state in ("starting", "running")
    return waits and not _may_lag(engine, folder, record, FoundIdle, seen)


def _may_lag(engine: Engine, folder: RunFolder, record: Record, kind: type[FoundGone | FoundIdle], seen: Seen) -> bool:
    """The engine's news may be older than the record, or the record on its way: both are given some time to agree.

    It counts from when a client first found this attempt so.
    """
    if not engine.lag_s:
        return False
    sightings = [event for event in folder.client_events() if isinstance(event, kind)]
    times = [event.time for event in sightings if event.epoch == record.epoch]
    if times:
        return time.time() - times[0] < engine.lag_s
    note(folder, kind.kind, record.epoch, why=seen.reason)
    return True


def _finish_submit(home: Home, engine: Engine, folder: RunFolder, record: Record) -> Record:
    with submitting(folder) as alone:
        if not alone:
            return record  # its client is at it
    if _submit_again(home, engine, folder, record):
        return home.read(folder.id)
    if time.time() - record.created_at < CREATE_S:
        return record  # its client may still be writing the other points
    note(folder, "lost", why=NEVER_SUBMITTED)
    return home.read(folder.id)


def _submit_again(home: Home, engine: Engine, folder: RunFolder, record: Record) -> bool:
    """Gives a young run to the engine that never had it, or lost it before it began; with all parts of its job."""
    siblings = _siblings(home, folder)
    unbegun = all(home.read(one.id).attempts == 0 for one in siblings)
    young = time.time() - record.created_at < FINISH_S
    return bool(young and siblings and unbegun and resubmit(engine, siblings))


def _siblings(home: Home, folder: RunFolder) -> list[RunFolder]:
    """All parts of the same job; none when the client died before it had written them all."""
    asked = folder.asked
    if asked.parent is None:
        return [folder]
    parent = home.folder(asked.parent)
    ids = point_ids(asked.parent, parent.asked.points)
    return [home.folder(one) for one in ids] if all(home.has(one) for one in ids) else []
