"""One run: its page, its document, its charts, what differs from another, and what is done to it."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from podwright import launch, report
from podwright.console.routes.sweep import sweep_page
from podwright.console.web import rows
from podwright.console.web.answers import Answer, Elsewhere, JsonAnswer, Page
from podwright.console.web.route import Visit
from podwright.spec.problems import Problem, Refusal, refuse, short
from podwright.theme import standalone

POINTS = 600
"""The most points of a line: a page's charts are as wide as that, and it comes with all of them."""
SERIES_FRESH_S = 2.0


@dataclass(frozen=True)
class RunNamed:
    """A run, by its id."""

    run: str


@dataclass(frozen=True)
class DiffRequest:
    """Two runs."""

    run: str
    other: str = ""


@dataclass(frozen=True)
class NoteRequest:
    """A run, and what is written on it."""

    run: str
    text: str = ""


@dataclass(frozen=True)
class AgainRequest:
    """A run that is started again; `resume`: from its checkpoints."""

    run: str
    resume: bool = False


@dataclass(frozen=True)
class ActRequest:
    """What a run's page asks for."""

    run: str
    act: str
    text: str = ""


def found(visit: Visit, ref: str) -> launch.Run:
    """Return a run; one that is not there is missing, which is no fault of the request."""
    try:
        return launch.find(visit.desk.session, ref)
    except Refusal as refusal:
        raise Refusal(refusal.problems, exit_code=1) from None


def show_run(visit: Visit, asked: RunNamed) -> Answer:
    """Return what is known of a run, as `show --json` has it."""
    return JsonAnswer(launch.overview_of(found(visit, asked.run)).as_json())


def series_of_run(visit: Visit, asked: RunNamed) -> Answer:
    """Return what a run's charts are drawn of, thinned to what a page can hold."""
    return JsonAnswer(_view(visit, found(visit, asked.run)).payload)


def run_page(visit: Visit, asked: RunNamed) -> Answer:
    """Show a run: the verdict first, then how far it is, what happened when, curves, machines, how to run it again."""
    visit.desk.look_soon()
    run = found(visit, asked.run)
    record = run.last_known()
    points = run.points()
    view: dict[str, Any] = {
        "title": run.id,
        "run": run,
        "record": record,
        "row": rows.outcome(record),
        "far": rows.how_far(record),
        "share": rows.share(record),
        "look": rows.look_of(record),
        "engine": record.target,
        "read_now": time.time(),
    }
    if points:
        return sweep_page(visit, view, run, points)
    shown = _view(visit, run)
    return Page("run", {**shown.view, **view, "payload": Markup(standalone.script_json(shown.payload))})


def _view(visit: Visit, run: launch.Run) -> report.RunView:
    """Return what is shown of a run; of one that is over it is made once."""
    now = visit.desk.clock.monotonic()
    key: tuple[object, ...] = (run.id, "view", int(now / SERIES_FRESH_S))
    if run.folder.is_sealed:
        labels = 0
        with suppress(OSError):
            labels = (run.folder.path / "client.jsonl").stat().st_size
        key = (run.id, "view", "sealed", labels)
    return visit.desk.kept(key, lambda: report.view_of_run(run, POINTS))


def diff_runs(visit: Visit, asked: DiffRequest) -> Answer:
    """Return what differs between two runs, as `diff --json` has it."""
    if not asked.other:
        raise refuse("is missing", "name another run", field="other")
    return JsonAnswer(launch.diff_runs(visit.desk.session, asked.run, asked.other).as_json())


def diff_page(visit: Visit, asked: DiffRequest) -> Answer:
    """Show what differs between a run and another."""
    run = found(visit, asked.run)
    differences = None
    problems: tuple[Problem, ...] = ()
    others = launch.browse(visit.desk.session, launch.RunSearch(launch.RunChoice(name=run.last_known().name))).found
    if asked.other:
        try:
            differences = launch.diff_runs(visit.desk.session, run.id, asked.other).differences
        except Refusal as refusal:
            problems = refusal.problems
    view = {
        "title": f"{run.id}: differences",
        "run": run,
        "record": run.last_known(),
        "asked": asked,
        "differences": differences,
        "problems": problems,
        "others": [record.id for record in others.records if record.id != run.id],
    }
    return Page("diff", view)


# acts


def note_run(visit: Visit, asked: NoteRequest) -> Answer:
    """Write a note on a run, in place of the one it had."""
    return JsonAnswer(_note(visit, asked.run, asked.text))


def _note(visit: Visit, ref: str, text: str) -> dict[str, str]:
    noted = launch.note_run(visit.desk.session, found(visit, ref), text)
    visit.note("note", "done", run=noted.run)
    return noted.as_json()


def run_again(visit: Visit, asked: AgainRequest) -> Answer:
    """Start what a run's record holds once more, as a new run."""
    return JsonAnswer({"id": _again(visit, asked.run, asked.resume)}, 201)


def _again(visit: Visit, ref: str, resume: bool) -> str:
    started = launch.start_again(visit.desk.session, found(visit, ref).id, resume)
    visit.note("resume" if resume else "rerun", "started", run=ref, started=started.id)
    return started.id


def act_on_run(visit: Visit, asked: ActRequest) -> Answer:
    """Do what a form on a run's page asks for."""
    if asked.act in ("rerun", "resume"):
        return Elsewhere(f"/runs/{_again(visit, asked.run, asked.act == 'resume')}")
    if asked.act == "note":
        _note(visit, asked.run, asked.text)
    else:
        raise refuse(f"is {short(asked.act)}", "rerun, resume or note", field="act")
    return Elsewhere(f"/runs/{asked.run}")
