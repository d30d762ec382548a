"""Runs whose run.json cannot be read: lost, unless they are settled or their engine still has them."""

from __future__ import annotations

from dataclasses import replace

from podwright.engines import Engine
from podwright.launch.session import Session
from podwright.runs import Record, RunFolder
from podwright.runs.unreadable import stand_in_asked
from podwright.spec.problems import Refusal

UNREACHABLE = 3
"""The exit code of a refusal that says no more than that a target is away."""


def look_anyway(session: Session, run_id: str) -> Record:
    """Return what can be said of the run now."""
    record = session.home.read_anyway(run_id)
    if record.state != "lost" or is_gone(session, record):
        return record
    return replace(record, state="running", ended_at=None)


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
