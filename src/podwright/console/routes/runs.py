"""Runs: the list, its overview, and what is done to several at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from podwright import launch
from podwright.console.web import rows
from podwright.console.web.answers import Answer, Elsewhere, JsonAnswer, Page
from podwright.console.web.pages import address
from podwright.console.web.route import Nothing, Visit
from podwright.runs import Record
from podwright.runs.facts import FIELDS
from podwright.spec.problems import Problem, Refusal, refuse

ON_OVERVIEW = 12
MAX_PAGE = 200
SORTS = ("created", "name", "state", "target", "duration_s", "cost", "user")
_OPEN = "state=running or state=starting or state=pending"


@dataclass(frozen=True)
class RunsRequest:
    """Which runs, in which order, and behind which place."""

    where: str | None = None
    sort: str | None = None
    columns: str = ""
    state: str | None = None
    after: str | None = None
    limit: int = 50

    def search(self) -> launch.RunSearch:
        """Return it as the door of launch is asked."""
        if not 1 <= self.limit <= MAX_PAGE:
            raise refuse(f"is {self.limit}", f"a page has 1 to {MAX_PAGE} runs", field="limit")
        columns = tuple(name.strip() for name in self.columns.split(",") if name.strip())
        choice = launch.RunChoice(state=self.state or None)
        return launch.RunSearch(choice, self.where or None, self.sort or None, columns, limit=self.limit)

    def query(self, **changed: Any) -> str:
        """Return the address of the list with some of it changed, from its first page on."""
        given = {"where": self.where, "sort": self.sort, "columns": self.columns, "state": self.state}
        return address("/runs", **{**given, **changed})


@dataclass(frozen=True)
class RunRow:
    """A run as the list shows it."""

    record: Record
    look: str
    outcome: str
    share: float | None
    lasted_s: float | None
    values: tuple[Any, ...] = ()


def rows_of(found: launch.FoundRuns) -> list[RunRow]:
    """Return runs as lists show them."""
    now = time.time()
    return [
        RunRow(
            record,
            rows.look_of(record),
            rows.outcome(record),
            rows.share(record),
            rows.lasted(record, now),
            tuple(found.values(record)),
        )
        for record in found.records
    ]


def list_runs(visit: Visit, asked: RunsRequest) -> Answer:
    """Return a page of the list, as `ps --json` has it; the header Link names the next."""
    visit.desk.look_soon()
    page = launch.browse(visit.desk.session, asked.search(), asked.after)
    headers = {}
    if page.next is not None:
        given = {name: value for name, value in vars(asked).items() if value and name != "after"}
        headers["Link"] = f'<{visit.base}{visit.path}?{urlencode({**given, "after": page.next})}>; rel="next"'
    return JsonAnswer(page.found.as_json(), headers=headers)


def runs_page(visit: Visit, asked: RunsRequest) -> Answer:
    """Show the list. A filter that cannot be read is said above it, and the list is empty."""
    visit.desk.look_soon()
    problems: tuple[Problem, ...] = ()
    page = launch.RunsPage(launch.FoundRuns(()))
    try:
        page = launch.browse(visit.desk.session, asked.search(), asked.after)
    except Refusal as refusal:
        problems = refusal.problems
    view = {
        "title": "Runs",
        "asked": asked,
        "problems": problems,
        "rows": rows_of(page.found),
        "columns": page.found.columns,
        "next": None if page.next is None else asked.query(after=page.next),
        "heads": list(_heads(asked)),
        "states": launch.STATES,
        "fields": ", ".join(FIELDS),
    }
    return Page("runs", view, 400 if problems else 200)


def _heads(asked: RunsRequest) -> Iterator[tuple[str, str, str, str]]:
    """Yield what each head that sorts needs: its field, its word, where it leads, and how it is sorted now."""
    titles = {"created": "Created", "name": "Run", "state": "State", "target": "Target", "duration_s": "Duration"}
    for name in (*titles, "cost"):
        at = (asked.sort or "-created").removeprefix("-")
        descending = (asked.sort or "-created").startswith("-")
        now = "" if at != name else ("descending" if descending else "ascending")
        turned = name if now == "descending" else f"-{name}"
        yield name, titles.get(name, name.capitalize()), asked.query(sort=turned), now


def overview(visit: Visit, asked: Nothing) -> Answer:
    """Return how the home does."""
    visit.desk.look_soon()
    return JsonAnswer(launch.tally(visit.desk.session, visit.desk.clock.time()).as_json())


def overview_page(visit: Visit, asked: Nothing) -> Answer:
    """Show what runs and waits, what failed today, and what the week came to."""
    visit.desk.look_soon()
    session = visit.desk.session

    def latest(where: str) -> list[RunRow]:
        request = launch.RunSearch(where=where, limit=ON_OVERVIEW, sort="-created")
        return rows_of(launch.browse(session, request).found)

    tally = launch.tally(session, visit.desk.clock.time())
    day = time.strftime("%Y-%m-%d", time.gmtime(visit.desk.clock.time() - 86400))
    view = {
        "title": "Overview",
        "tally": tally,
        "verdict": _verdict(tally),
        "open": latest(_OPEN),
        "failed": latest(f"(state=failed or state=lost) and created>={day}"),
        "rows": rows_of(launch.browse(session, launch.RunSearch(limit=ON_OVERVIEW)).found),
    }
    return Page("overview", view)


def _verdict(tally: launch.RunsTally) -> str:
    """Say in one sentence how things are."""
    bad = tally.day.get("failed", 0) + tally.day.get("lost", 0)
    done = tally.day.get("succeeded", 0)
    if not tally.week and not tally.open:
        return "Nothing has run this week."
    now = "Nothing runs" if not tally.open else f"{tally.open} {'runs are' if tally.open > 1 else 'run is'} not over"
    if not bad and not done:
        return f"{now}; none has ended since yesterday."
    if not bad:
        return f"{now}; since yesterday {done} succeeded and none failed."
    return f"{now}; since yesterday {bad} failed or {'were' if bad > 1 else 'was'} lost, {done} succeeded."


# acts


@dataclass(frozen=True)
class RunsNamed:
    """Runs, by their ids."""

    runs: tuple[str, ...]


@dataclass(frozen=True)
class TagRequest:
    """Runs, and the tags they get and lose."""

    runs: tuple[str, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(frozen=True)
class ActsRequest:
    """What a page's form asks for of runs; nothing is done before it was confirmed."""

    act: str
    run: tuple[str, ...] = ()
    tags: str = ""
    confirmed: bool = False


def cancel_runs(visit: Visit, asked: RunsNamed) -> Answer:
    """Ask runs to end, with the grace they were promised."""
    return JsonAnswer(_cancel(visit, asked.runs))


def _cancel(visit: Visit, names: tuple[str, ...]) -> dict[str, list[str]]:
    session = visit.desk.session
    runs = launch.find_all(session, _some(names))
    asked = launch.cancel_runs(session, runs)
    over = [run.id for run in runs if run.id not in asked]
    visit.note("cancel", "asked", runs=sorted(asked), was_over=over)
    return {"runs": sorted(asked), "was_over": over}


def tag_runs(visit: Visit, asked: TagRequest) -> Answer:
    """Tag runs, or take tags away."""
    return JsonAnswer(_tag(visit, asked))


def _tag(visit: Visit, asked: TagRequest) -> dict[str, Any]:
    session = visit.desk.session
    change = launch.TagChange(asked.added, asked.removed)
    tagged = launch.tag_runs(session, launch.find_all(session, _some(asked.runs)), change)
    visit.note("tag", "done", runs=list(asked.runs), added=list(asked.added), removed=list(asked.removed))
    return tagged.as_json()


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise refuse("are missing", "choose at least one", field="runs")
    return names


def act_on_runs(visit: Visit, asked: ActsRequest) -> Answer:
    """Do what a form asks for, or show first what would be done."""
    _some(asked.run)
    if asked.act == "compare":
        return Elsewhere(address("/compare", side=asked.run))
    if asked.act not in ("cancel", "tag"):
        raise refuse("is none that is done to several runs", "cancel, tag or compare", field="act")
    words = asked.tags.replace(",", " ").split()
    if asked.act == "tag" and not words:
        raise refuse("are missing", "such as `paper`, or `-draft` to take one away", field="tags")
    if not asked.confirmed:
        runs = launch.find_all(visit.desk.session, asked.run)
        found = rows_of(launch.FoundRuns(tuple(run.last_known() for run in runs)))
        title = f"Cancel {len(runs)} runs?" if asked.act == "cancel" else f"Tag {len(runs)} runs?"
        return Page("confirm", {"title": title.replace(" 1 runs", " this run"), "asked": asked, "rows": found})
    if asked.act == "cancel":
        _cancel(visit, asked.run)
    else:
        removed = tuple(word[1:] for word in words if word.startswith("-"))
        added = tuple(word.removeprefix("+") for word in words if not word.startswith("-"))
        _tag(visit, TagRequest(asked.run, added, removed))
    return Elsewhere(f"/runs/{asked.run[0]}" if len(asked.run) == 1 else "/runs")
