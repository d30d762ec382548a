"""Sides against each other: repeats and cells of suites by the rule of `compare`, and their runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from podwright import launch, prove, report
from podwright.console.web.answers import Answer, JsonAnswer, Page
from podwright.console.web.route import Visit
from podwright.spec.problems import Problem, Refusal, refuse
from podwright.theme import standalone

MAX_SIDES = 8
MAX_DRAWN = 8
"""So many runs are drawn over each other at most."""
FRESH_S = 10.0


@dataclass(frozen=True)
class CompareRequest:
    """Runs or cells, what of them is compared, and how far apart is still the same."""

    side: tuple[str, ...] = ()
    metric: str = "duration_s"
    margin: str = "3%"

    @property
    def named(self) -> tuple[str, ...]:
        """Return the sides that are named: a form sends its empty fields too."""
        return tuple(name.strip() for name in self.side if name.strip())


def compare(visit: Visit, asked: CompareRequest) -> Answer:
    """Return each side against the first, as `compare --json` has it."""
    return JsonAnswer([pair.as_json() for pair in _compared(visit, asked)])


def _compared(visit: Visit, asked: CompareRequest) -> Sequence[prove.SidesCompared]:
    if len(asked.named) > MAX_SIDES:
        raise refuse(f"are {len(asked.named)}", f"at most {MAX_SIDES} are compared at once", field="side")
    measure = prove.Measure(asked.metric, prove.margin_of(asked.margin))
    now = int(visit.desk.clock.monotonic() / FRESH_S)
    key = "compare", asked, visit.desk.session.home.index.change().number, now
    return visit.desk.kept(key, lambda: prove.compare_refs(visit.desk.session, asked.named, measure, files=False))


def compare_page(visit: Visit, asked: CompareRequest) -> Answer:
    """Show what is proven of sides and what is not, every run as a dot, and the runs side by side."""
    view: dict[str, Any] = {
        "title": "Compare",
        "asked": asked,
        "problems": (),
        "pairs": [],
        "shown": None,
        "payload": Markup(standalone.script_json({})),
        "names": [record.id for record in launch.browse(visit.desk.session, launch.RunSearch(limit=100)).found.records],
    }
    if not asked.named:
        return Page("compare", view)
    problems: list[Problem] = []
    try:
        pairs = _compared(visit, asked)
        view["pairs"] = [report.view_of_pair(pair) for pair in pairs]
        runs = _of_sides([pairs[0].a, *(pair.b for pair in pairs)])
    except Refusal as refusal:
        problems += refusal.problems
        runs = list(asked.named)
    view |= _side_by_side(visit, runs)
    return Page("compare", {**view, "problems": problems}, 400 if problems else 200)


def _of_sides(sides: Sequence[prove.Side]) -> list[str]:
    """Return runs of all sides, as many of each as can be drawn."""
    share = max(1, MAX_DRAWN // len(sides))
    runs: list[str] = []
    for side in sides:
        runs += side.runs[:share]
    return list(dict.fromkeys(runs))


def _side_by_side(visit: Visit, names: Sequence[str]) -> dict[str, Any]:
    """Return the figures and curves of runs, as far as these are there: a suite outlives them."""
    home = visit.desk.session.home
    runs = [launch.find(visit.desk.session, name) for name in names if home.has(name)]
    runs = [run for run in runs if not run.points()][:MAX_DRAWN]
    if len(runs) < 2:
        return {}
    states = tuple((run.id, run.last_known().state, run.last_known().ended_at) for run in runs)
    now = int(visit.desk.clock.monotonic() / FRESH_S)
    shown = visit.desk.kept(("side by side", states, now), lambda: report.view_of_runs(runs))
    return {**shown.view, "title": "Compare", "shown": True, "payload": Markup(standalone.script_json(shown.payload))}
