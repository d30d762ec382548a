"""Runs whose run.json cannot be read: lost, unless they are settled or their engine still has them.

A run whose whole folder was removed by hand is known to this machine alone, by its processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from podwright.engines.base import Engine
from podwright.engines.site import SiteLost
from podwright.launch.session import Session
from podwright.runs import Record, RunFolder
from podwright.runs.damaged import NO_TARGET, changed_at, stand_in_asked, stand_in_record
from podwright.runs.store import ID
from podwright.spec.problems import Refusal

MAY_REMAIN = "what it left on {target} may still be there: {why}"
UNREACHABLE = 3
"""The exit code of a refusal that says no more than that a target is away."""


def look_anyway(session: Session, run_id: str) -> Record:
    """Return what can be said of the run now."""
    record = session.home.read_anyway(run_id)
    if record.state != "lost" or session.home.folder(run_id).strayed_to is not None or is_gone(session, record):
        return record
    return replace(record, state="running", ended_at=None)


def without_site(record: Record, lost: SiteLost) -> Record:
    """Return the record of a run of which nobody can ask its cluster any more: as it was settled, else lost."""
    if record.is_final:
        return record
    ended_at = changed_at(RunFolder(Path(record.folder)))
    return replace(record, state="lost", reason=f"its record cannot be read: {lost.reason}", ended_at=ended_at)


def cancel_strays(session: Session, refs: Sequence[str]) -> list[Record]:
    """Ask those of the named runs to end whose folder is gone, and whose processes live on this machine."""
    strays = []
    for run_id in refs:
        if not ID.fullmatch(run_id) or session.home.is_there(run_id):
            continue
        engine, _ = session.target("local")
        bare = stand_in_record(RunFolder(session.home.runs / run_id), None, "its folder is gone")
        record = replace(bare, state="running", target="local", ended_at=None)
        folder = RunFolder(session.home.runs / run_id, stand_in_asked(record))
        with session.using(engine):
            if engine.status([folder])[run_id].state != "gone":
                engine.cancel([folder])
                strays.append(record)
    return strays


def is_gone(session: Session, record: Record) -> bool:
    """Return whether no engine has the run; one that is away for a moment may have it."""
    engine, folder = engine_anyway(session, record)
    try:
        with session.using(engine):
            return engine.status([folder])[folder.id].state == "gone"
    except Refusal as refusal:
        return refusal.exit_code != UNREACHABLE
    except (OSError, ValueError, KeyError):
        # What told the engine where the run lies is gone with run.json. Should it turn up again, `lost` is revised.
        return True


def engine_anyway(session: Session, record: Record) -> tuple[Engine, RunFolder]:
    """Return the engine the run went to, as far as that is known, and a folder that it can ask about.

    By the run's own copy of its pod, else by the name of its target, else the one of this machine.
    """
    folder = RunFolder(session.home.runs / record.id, stand_in_asked(record))
    try:
        return session.engine_of(folder), folder
    except Refusal:
        pass
    try:
        return session.target(record.target)[0], folder
    except Refusal:
        return session.target("local")[0], folder


def remove_anyway(session: Session, run_id: str) -> list[str]:
    """Remove what such a run left on its target, as far as that is known; return what may be left there."""
    record = session.home.read_anyway(run_id)
    if session.home.folder(run_id).strayed_to is not None:
        return []  # what it was is not known, and what lies there may say anything
    if record.target == NO_TARGET:
        return ["nobody knows any more where it ran: what it left on a cluster may still be there"]
    engine, folder = engine_anyway(session, record)
    try:
        engine.remove(folder)
    except SiteLost as lost:
        return [MAY_REMAIN.format(target=record.target, why=lost.reason)]
    except (OSError, ValueError, KeyError) as error:
        # What told the engine where the rest lies may be gone with run.json: the folder here goes all the same.
        return [MAY_REMAIN.format(target=record.target, why=f"{type(error).__name__}: {error}")]
    return []
