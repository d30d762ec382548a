"""Finding runs: those that a user names, the latest, all of a home."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from podwright.files.people import user_name
from podwright.launch.run_filter import ANY, RunChoice
from podwright.launch.session import Session
from podwright.runs import Record
from podwright.runs.query import NEWEST_FIRST, NO_POINTS, both
from podwright.spec.problems import Refusal, refuse, short

if TYPE_CHECKING:
    from podwright.launch.run import Run


def find(session: Session, ref: str) -> Run:
    """Return the run a user means: its id, an unambiguous start of it, or `last`."""
    from podwright.launch.run import Run

    if "/" in ref:
        hint = "`show`, `logs` and `report` take USER/ID; nothing else reads a colleague's run, and nothing changes it"
        raise refuse(f"{short(ref)!r} is no run of yours", hint)
    return Run(session, session.home.resolve(ref))


def find_to_read(session: Session, ref: str) -> Run:
    """Return the run a user wants to look at: one of their own, or a colleague's shared one, `USER/ID`."""
    if "/" not in ref:
        return find(session, ref)
    from podwright.launch.shared_runs import open_shared

    return open_shared(session.home, ref)


def find_all(session: Session, refs: Sequence[str]) -> list[Run]:
    """Return the runs a user means, in the order they were named."""
    return [find(session, ref) for ref in refs]


def find_all_to_read(session: Session, refs: Sequence[str]) -> list[Run]:
    """Return the runs a user wants to look at, in the order they were named."""
    return [find_to_read(session, ref) for ref in refs]


def recent(session: Session, limit: int | None = 20, choice: RunChoice = ANY) -> list[Record]:
    """Return the latest runs and all that are not over, oldest first; points are seen through their parent.

    With a choice the limit counts those that it means.
    """
    home = session.home
    if choice.user is not None:
        return _of_users(session, limit, choice)
    home.sync()
    fresh = {record.id: record for record in look_at_open(session)}
    if choice.is_any:
        latest = {record.id: record for record in home.index.latest(limit)}
        return sorted({**latest, **fresh}.values(), key=_creation)
    found = home.index.chosen(both(choice.condition(), NO_POINTS), NEWEST_FIRST, limit)
    latest = {record.id: record for record in found}
    chosen = sorted((record for record in {**latest, **fresh}.values() if choice.fits(record)), key=_creation)
    return chosen if limit is None else chosen[-limit:]


def look_at_open(session: Session) -> list[Record]:
    """Ask after all runs that are not over, which the index then knows as they are now; return them."""
    return _reconcile_all(session, session.home.index.open_ids(time.time()))


def _of_users(session: Session, limit: int | None, choice: RunChoice) -> list[Record]:
    """Return the runs of one user, or of everybody: one's own, and what colleagues share."""
    from podwright.launch.shared_runs import EVERYBODY, listed

    own, shared = [], []
    if choice.user in (EVERYBODY, user_name()):
        own = recent(session, None, replace(choice, user=None))
    if choice.user != user_name():
        shared = [record for record in listed(session.home, str(choice.user)) if choice.fits(record)]
    chosen = sorted([*own, *shared], key=_creation)
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
