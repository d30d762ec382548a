"""Runs that nobody will hear of again, by a person's word: sealed as lost, with the reason and what may be left."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from podwright.launch.journal import note
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.sharing import publish
from podwright.runs.seal import seal


def abandon(session: Session, run: Run, why: str) -> list[str]:
    """Seal what is not over of a run as lost; return sentences about what its target may still have."""
    left = []
    for part in run.parts():
        if part.last_known().is_final:
            continue
        note(part.folder, "lost", why=why)
        record = part.last_known()
        with suppress(OSError):
            seal(part.folder, record)
        publish(session.home, part.folder, record)
        session.home.keep([record])
        left.append(what_is_left(part))
    session.home.keep([run.last_known()])
    return left


def what_is_left(run: Run) -> str:
    """Say what a target that could not be asked may still have of a run."""
    asked, handle = run.folder.asked, run.folder.handle
    if handle is None:
        return f"{asked.target} may have the folder of {run.id}"
    return f"{asked.target} may have the folder of {run.id}, and run it under the name {handle}"


def open_runs(session: Session, pod: str) -> list[Run]:
    """Return the runs that went to a pod, to any of its schedulers, and are not over."""
    home = session.home
    home.sync()
    runs = [Run(session, run_id) for run_id in home.index.open_ids(session.clock.time())]
    readable = [run for run in runs if run.folder.is_readable]
    return [run for run in readable if run.folder.asked.target.partition(":")[0] == pod]


def abandon_silent(session: Session, runs: Sequence[Run], why: str) -> list[str]:
    """Seal those of the runs as lost whose target does not answer; return what may be left there."""
    left = []
    for run in runs:
        record = run.record()
        if record.silence:
            left += abandon(session, run, f"{why}; {record.silence}")
    return left
