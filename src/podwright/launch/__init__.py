"""Launch: the one way a run is started and followed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from podwright.launch.follow import reconcile
from podwright.launch.run import Change, Run
from podwright.launch.start import prepare
from podwright.launch.start import start as _start
from podwright.runs import Home, Record
from podwright.runs.record import from_json
from podwright.runs.store import default_home
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.spec import Workload

__all__ = ["Change", "Run", "find", "find_all", "rebuild", "recent", "render", "start"]


def render(
    workload: Workload, on: str = "local", run_id: str | None = None, home: Home | None = None
) -> dict[str, str]:
    """What `start` would write and start, file by file, to the letter; nothing is touched."""
    return prepare(home or Home(default_home()), workload, on, run_id or f"{workload.name}-0000").files


def start(home: Home, workload: Workload, on: str = "local", repeat: int = 1, after: str | None = None) -> Run:
    """Start a run and return once it is submitted."""
    before = home.resolve(after) if after else None
    prepared = prepare(home, workload, on, home.new_id(workload.name), repeat, before)
    return Run(home, _start(home, prepared))


def find(home: Home, ref: str) -> Run:
    return Run(home, home.resolve(ref))


def find_all(home: Home, refs: Sequence[str]) -> list[Run]:
    return [find(home, ref) for ref in refs]


def recent(home: Home, limit: int | None = 20) -> list[Record]:
    """The latest runs and all that are not over, oldest first; points are seen through their parent."""
    home.sync()
    fresh = {record.id: record for record in _reconcile_all(home, home.index.open_ids(time.time()))}
    latest = {row["id"]: from_json(row) for row in home.index.latest(limit)}
    return sorted({**latest, **fresh}.values(), key=lambda record: record.created_at)


def _reconcile_all(home: Home, ids: list[str]) -> list[Record]:
    """One that cannot be read, or that another client removes just now, does not hide the others."""
    try:
        return reconcile(home, ids)
    except Refusal:
        found: list[Record] = []
        for one in ids:
            with suppress(Refusal):
                found += reconcile(home, [one])
        return found


def rebuild(home: Home) -> int:
    """Make the index anew from the folders; gives how many runs there are."""
    return home.rebuild()
