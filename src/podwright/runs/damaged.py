"""Runs whose run.json cannot be read: what can still be said of them, so that they can be seen and removed."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace

from podwright.files.untrusted import read_untrusted
from podwright.pilot.protocol import whole_number
from podwright.runs.fold import Fold
from podwright.runs.folder import RunFolder
from podwright.runs.record import Asked, Record, from_row
from podwright.runs.states import SETTLED
from podwright.spec.problems import Refusal

NO_TARGET = "?"


def stand_in_record(folder: RunFolder, last: Record | None, reason: str) -> Record:
    """Return the record of such a run: as it was settled, as its events settle it, else lost with the reason.

    `last` is what was last known of it.
    """
    known = sealed_record(folder) or last or _bare(folder)
    if known.state in SETTLED:
        return known
    fold = Fold(stand_in_asked(known), str(folder.path))
    fold.take(folder.events())
    folded = fold.record(time.time())
    if folded.state in SETTLED:
        return folded
    return replace(known, state="lost", reason=reason, ended_at=known.ended_at or changed_at(folder))


def stand_in_asked(record: Record) -> Asked:
    """Return what an engine must know of a run to find it, from its record."""
    index = None
    if record.parent is not None:
        place = whole_number(record.id.rpartition("-")[2])
        index = (place or 1) - 1
    return Asked(
        id=record.id,
        name=record.name,
        target=record.target,
        engine="",
        created_at=record.created_at,
        nodes=record.nodes,
        ranks_per_node=record.world_size // max(record.nodes, 1),
        workload={"goal": record.goal},
        parent=record.parent,
        matrix=record.matrix,
        index=index,
        user=record.user,
        team=record.team,
    )


def closed_record(folder: RunFolder, folded: Record) -> Record:
    """Return how a run ended whose folder is closed, but whose events do not say so any more."""
    reason = "its record cannot be read: its last events are gone"
    return sealed_record(folder) or replace(folded, state="lost", reason=reason, ended_at=changed_at(folder))


def sealed_record(folder: RunFolder) -> Record | None:
    """Return the record that was written when the folder was closed; None where there is none that can be read."""
    with suppress(OSError, ValueError, RecursionError):
        record = from_row(json.loads(read_untrusted(folder.path, "record.json")))
        if record.id == folder.id:
            return replace(record, folder=str(folder.path))
    return None


def stray_record(folder: RunFolder) -> Record:
    """Return the record of an entry that is a link to something else: nothing is read there."""
    return replace(_bare(folder), state="lost", reason=f"its folder is a link to {folder.strayed_to}, and no run")


def _bare(folder: RunFolder) -> Record:
    """Return the record of a run of which nothing is known but its id."""
    return Record(
        id=folder.id,
        name=folder.id.rpartition("-")[0] or folder.id,
        target=NO_TARGET,
        state="lost",
        folder=str(folder.path),
        nodes=0,
        world_size=0,
        created_at=changed_at(folder),
    )


def why_unreadable(folder: RunFolder) -> str:
    """Return why nobody can say what was asked of a run."""
    if not folder.path.exists():
        return "its folder is gone"
    if not (folder.path / "run.json").exists():
        return "its record cannot be read: run.json is gone"
    try:
        return f"its record cannot be read: {folder.asked.id}"
    except Refusal as refusal:
        return f"its record cannot be read: {refusal.problems[0].message.removeprefix(str(folder.path) + '/')}"


def changed_at(folder: RunFolder) -> float:
    """Return when something was last put into a run's folder or taken out: the best guess of when it ended."""
    try:
        return folder.path.lstat().st_mtime if folder.strayed_to else folder.path.stat().st_mtime
    except OSError:
        return time.time()
