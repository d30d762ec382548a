"""Runs a page at a time, as the index has them: for whoever shows a home for weeks and sees to it that it is fresh."""

from __future__ import annotations

import base64
import json
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.launch.finding import look_at_open
from podwright.launch.searching import FoundRuns, RunSearch, asked_of
from podwright.runs import spent
from podwright.runs.query import RunPlace
from podwright.runs.spent import spent_since
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch.session import Session
    from podwright.runs import Record
    from podwright.runs.index import IndexChange

PAGE = 50
DAY_S = 86400.0


@dataclass(frozen=True)
class RunsPage:
    """Some of the runs that fit, in order, and the place behind them; None where these are the last."""

    found: FoundRuns
    next: str | None = None


@dataclass(frozen=True)
class RunsTally:
    """How a home does: runs of the last day by their state, all that are not over, and what a week's runs cost."""

    open: int
    day: dict[str, int]
    week: dict[str, int]
    costs: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Return it as an API has it."""
        return dict(vars(self))


def browse(session: Session, request: RunSearch, after: str | None = None) -> RunsPage:
    """Return the page of runs behind a place, the newest first or as sorted. No target is asked."""
    index = session.home.index
    session.home.sync()
    asked = asked_of(index, request)
    size = request.limit or PAGE
    place = None if after is None else _place_of(after)
    rows = index.page(asked.condition, asked.order, size + 1, place)
    last = rows[size - 1].place if len(rows) > size else None
    found = FoundRuns(tuple(row.record for row in rows[:size]), asked.columns)
    return RunsPage(found, None if last is None else _text_of(last))


def runs_on_host(session: Session, pod: str, host: str, most: int) -> list[Record]:
    """Return the newest runs of a pod that its host took part in; hosts of other pods may be called the same."""
    session.home.sync()
    records = session.home.index.answer(spent.runs_on_host(host, 4 * most))
    return [record for record in records if record.target.partition(":")[0] == pod][:most]


def tally(session: Session, now: float | None = None) -> RunsTally:
    """Count the runs of a home."""
    now = time.time() if now is None else now
    session.home.sync()
    index = session.home.index
    day, week = Counter[str](), Counter[str]()
    costs: dict[str, float] = defaultdict(float)
    for row in index.answer(spent_since(now - DAY_S, "state")):
        day[row.name or ""] += row.runs
    for row in index.answer(spent_since(now - 7 * DAY_S, "state")):
        week[row.name or ""] += row.runs
        if row.currency is not None:
            costs[row.currency] += row.amount or 0.0
    return RunsTally(len(index.open_ids(now)), dict(day), dict(week), dict(costs))


def refresh(session: Session) -> IndexChange:
    """Ask after all runs that are not over, and return the last change that this, or anybody else, made."""
    session.home.sync()
    look_at_open(session)
    return session.home.index.change()


def _text_of(place: RunPlace) -> str:
    row = json.dumps([place.value, place.run, place.has_value]).encode()
    return base64.urlsafe_b64encode(row).decode().rstrip("=")


def _place_of(text: str) -> RunPlace:
    try:
        row = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        value, run, has_value = row
    except (ValueError, TypeError, RecursionError):
        raise _no_place() from None
    if not isinstance(value, (str, float, int)) or not isinstance(run, str) or not isinstance(has_value, bool):
        raise _no_place()
    return RunPlace(value, run, has_value)


def _no_place() -> Exception:
    return refuse("is no place in a list", "take it from the page before", field="after")
