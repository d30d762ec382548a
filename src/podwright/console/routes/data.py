"""Datasets, selections and policies: what is there, what it holds, how one selection differs from another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import podwright
from podwright import report
from podwright.console.web.answers import Answer, JsonAnswer, Page
from podwright.console.web.route import Nothing, Visit
from podwright.data import DatasetColumns, SelectionFiles, ShowRequest
from podwright.spec.problems import Problem, Refusal, refuse

if TYPE_CHECKING:
    from podwright.data import Catalog

MAX_PICTURES = 6
MAX_LISTED = 100
MAX_VALUES = 24
"""Values of a column that a page shows; its filter finds the others."""


@dataclass(frozen=True)
class DataNamed:
    """A dataset or a selection."""

    name: str


@dataclass(frozen=True)
class DataDiffRequest:
    """Two selections."""

    name: str
    other: str = ""


@dataclass(frozen=True)
class DataRequest:
    """A dataset and a filter of its samples, or a selection and another that it is compared with."""

    name: str
    where: str | None = None
    other: str = ""


def _catalog(visit: Visit) -> Catalog:
    return podwright.catalog(visit.desk.session)


def _shown(visit: Visit, name: str) -> DatasetColumns | SelectionFiles:
    """Return what `data ls NAME` shows; runs that were given it are looked for after each change."""
    change = visit.desk.session.home.index.change().number
    try:
        shown = _catalog(visit).show(ShowRequest(name))
        if isinstance(shown, DatasetColumns):
            return shown
        key = "given", name, shown.selection.created_at, change
        return visit.desk.kept(key, lambda: _catalog(visit).show(ShowRequest(name, runs=True)))
    except Refusal as refusal:
        raise Refusal(refusal.problems, exit_code=1) from None


def list_data(visit: Visit, asked: Nothing) -> Answer:
    """Return the datasets and selections of the home, as `data ls --json` has them."""
    return JsonAnswer(_catalog(visit).ls().as_json())


def show_data(visit: Visit, asked: DataNamed) -> Answer:
    """Return the columns of a dataset or the images of a selection, as `data ls NAME --json` has them."""
    return JsonAnswer(_shown(visit, asked.name).as_json())


def statistics_of(visit: Visit, asked: DataNamed) -> Answer:
    """Return what the labels of a dataset hold that were counted, as `data stats --json` has it."""
    if not isinstance(_shown(visit, asked.name), DatasetColumns):
        raise refuse(f"{asked.name} is a selection", "statistics are of datasets", field="name", exit_code=1)
    with _catalog(visit).open(asked.name) as opened:
        return JsonAnswer(opened.statistics().as_json())


def diff_data(visit: Visit, asked: DataDiffRequest) -> Answer:
    """Return how another selection differs from this one, as `data diff --json` has it."""
    if not asked.other:
        raise refuse("is missing", "name another selection", field="other")
    return JsonAnswer(_catalog(visit).diff(asked.name, asked.other).as_json())


def list_policies(visit: Visit, asked: Nothing) -> Answer:
    """Return the policies of the home and where each stands, as `data policy ls --json` has them."""
    return JsonAnswer([policy.as_json() for policy in _catalog(visit).policies.reports()])


def data_page(visit: Visit, asked: Nothing) -> Answer:
    """Show the datasets, the selections and the policies of the home."""
    view: dict[str, Any] = {"title": "Data", "listing": None, "policies": (), "problems": ()}
    try:
        catalog = _catalog(visit)
        view |= {"listing": catalog.ls(), "policies": catalog.policies.reports()}
    except Refusal as refusal:
        view["problems"] = refusal.problems
    return Page("data", view)


def one_data_page(visit: Visit, asked: DataRequest) -> Answer:
    """Show what a dataset holds and which samples a filter chooses, or a selection and how another differs."""
    shown = _shown(visit, asked.name)
    if isinstance(shown, DatasetColumns):
        return _dataset_page(visit, asked, shown)
    return _selection_page(visit, asked, shown)


def _dataset_page(visit: Visit, asked: DataRequest, shown: DatasetColumns) -> Page:
    catalog, problems = _catalog(visit), list[Problem]()
    where = (asked.where or "").strip() or None
    try:
        gallery = catalog.gallery(asked.name, where, MAX_PICTURES)
    except Refusal as refusal:
        problems += refusal.problems
        gallery = catalog.gallery(asked.name, None, 0)
    with catalog.open(asked.name) as opened:
        counted = opened.statistics()
    columns = [(name, values, list(values.items())[:MAX_VALUES]) for name, values in shown.columns.items()]
    view = {
        **report.view_of_gallery(gallery),
        "asked": asked,
        "summary": shown.summary,
        "columns": columns,
        "counted": counted,
        "history": catalog.history(asked.name).generations[:MAX_VALUES],
        "growth": catalog.growth(asked.name),
        "problems": problems,
    }
    return Page("dataset", view, 400 if problems else 200)


def _selection_page(visit: Visit, asked: DataRequest, shown: SelectionFiles) -> Page:
    catalog, problems, difference = _catalog(visit), list[Problem](), None
    if asked.other:
        try:
            difference = catalog.diff(asked.name, asked.other)
        except Refusal as refusal:
            problems += refusal.problems
    names = [selection.name for selection in catalog.ls().selections if selection.name != asked.name]
    view = {
        **report.view_of_selection(shown.selection),
        "asked": asked,
        "difference": difference,
        "others": names,
        "files": [(split, file.path, file.size) for split, file in shown.files[:MAX_LISTED]],
        "files_count": len(shown.files),
        "given_to": shown.runs,
        "problems": problems,
    }
    return Page("selection", view, 400 if problems else 200)
