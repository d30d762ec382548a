"""Launch: the one way a run is started and followed.

Most of it is imported when it is first used: `podwright ps` where nothing runs needs next to nothing of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from podwright.launch.run_filter import ANY, RunChoice
from podwright.launch.session import Session
from podwright.runs import Home, Record
from podwright.runs.store import default_home
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.launch.damaged import cancel_strays
    from podwright.launch.run import Change, Run, cancel_runs, refuse_silence
    from podwright.spec import Workload

_HOMES = dict.fromkeys(("Change", "Run", "cancel_runs", "refuse_silence"), "run") | {"cancel_strays": "damaged"}
"""The file of each public name that is imported late."""

PROFILE, PROFILE_STEPS = "PODWRIGHT_PROFILE", 8
"""The variable by which a program is asked for a profile, and of how many steps."""

__all__ = [
    "Change",
    "Run",
    "RunChoice",
    "Session",
    "cancel_runs",
    "cancel_strays",
    "find",
    "find_all",
    "profiled",
    "rebuild",
    "recent",
    "refuse_silence",
    "render",
    "start",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def render(
    workload: Workload, on: str = "local", run_id: str | None = None, session: Session | None = None
) -> dict[str, str]:
    """Return what `start` would write and start, file by file, to the letter; nothing is touched."""
    from podwright.launch.submission import Submission, prepare

    # Not `Session.open()`, which would make a home where there is none.
    session = session or Session(Home(default_home()))
    with prepare(session, Submission(workload, on, run_id or f"{workload.name}-0000")) as prepared:
        return prepared.files


def start(
    session: Session,
    workload: Workload,
    on: str = "local",
    repeat: int = 1,
    after: str | None = None,
    run_id: str | None = None,
) -> Run:
    """Start a run and return once it is submitted; whoever must know its id before that gives it one of the home's."""
    from podwright.launch.run import Run
    from podwright.launch.submission import Submission, prepare
    from podwright.launch.submission import start as submit

    home = session.home
    before = home.resolve(after) if after else None
    submission = Submission(workload, on, run_id or home.new_id(workload.name), repeat, before)
    with prepare(session, submission) as prepared:
        return Run(session, submit(session, prepared))


def profiled(workload: Workload, steps: int = PROFILE_STEPS) -> Workload:
    """Return the same workload, whose program is asked to profile a few of its steps."""
    return workload.model_copy(update={"env": {**workload.env, PROFILE: str(steps)}})


def find(session: Session, ref: str) -> Run:
    """Return the run a user means: its id, an unambiguous start of it, or `last`."""
    from podwright.launch.run import Run

    return Run(session, session.home.resolve(ref))


def find_all(session: Session, refs: Sequence[str]) -> list[Run]:
    """Return the runs a user means, in the order they were named."""
    return [find(session, ref) for ref in refs]


def recent(session: Session, limit: int | None = 20, choice: RunChoice = ANY) -> list[Record]:
    """Return the latest runs and all that are not over, oldest first; points are seen through their parent.

    With a choice the limit counts those that it means.
    """
    home = session.home
    home.sync()
    fresh = {record.id: record for record in _reconcile_all(session, home.index.open_ids(time.time()))}
    latest = {record.id: record for record in home.index.latest(limit if choice.is_any else None)}
    if choice.is_any:
        return sorted({**latest, **fresh}.values(), key=_creation)
    chosen = sorted((record for record in {**latest, **fresh}.values() if choice.fits(record)), key=_creation)
    return chosen if limit is None else chosen[-limit:]


def _creation(record: Record) -> float:
    return record.created_at


def _reconcile_all(session: Session, ids: list[str]) -> list[Record]:
    """Reconcile many; one that cannot be read, or that another client removes just now, does not hide the others."""
    if not ids:
        return []
    from podwright.launch.follow import look, reconcile

    try:
        records = reconcile(session, ids)
    except Exception:
        records = []
        for run_id in ids:
            with suppress(Refusal):
                records.append(look(session, run_id))
    return [record for record in records if session.home.is_there(record.id)]


def rebuild(session: Session) -> int:
    """Make the index again from the folders; return how many runs there are."""
    return session.home.rebuild()
