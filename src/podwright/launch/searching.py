"""Runs by what is in their records: filtered, sorted, and the best of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from podwright.analysis.figures import less_is_better
from podwright.files.people import user_name
from podwright.launch.finding import look_at_open
from podwright.launch.run_filter import ANY, OF_RUN, RunChoice
from podwright.runs.facts import FIELDS, PLACES, fact
from podwright.runs.query import (
    HAS_FACT,
    NEWEST_FIRST,
    NO_POINTS,
    RunCondition,
    RunOrder,
    bare_names,
    both,
    condition_of,
    whole_name,
)
from podwright.spec.filters import parse_filter
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch.session import Session
    from podwright.runs import Record
    from podwright.runs.index import Index


HAS_RESULTS = RunCondition(
    "EXISTS (SELECT 1 FROM facts WHERE run = id AND facts.name >= 'results.' AND facts.name < 'results/')"
)


@dataclass(frozen=True)
class RunSearch:
    """Which runs are asked for, and how they are told."""

    choice: RunChoice = ANY
    where: str | None = None
    """A filter; points of sweeps are looked at, too."""
    sort: str | None = None
    """A field, or a name of `matrix` or `results`; the greatest first where a dash stands before it."""
    columns: tuple[str, ...] = ()
    tree: bool = False
    """Each sweep, with its points behind it."""
    limit: int | None = None


@dataclass(frozen=True)
class FoundRuns:
    """The runs that fit, and the columns that were asked for by their whole names."""

    records: tuple[Record, ...]
    columns: tuple[str, ...] = ()
    is_tree: bool = False

    def values(self, record: Record) -> list[Any]:
        """Return a run's values of the columns."""
        return [fact(record, name) for name in self.columns]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the document of `ps`."""
        return [record.as_json() for record in self.records]


def search(session: Session, request: RunSearch) -> FoundRuns:
    """Return the runs that fit, oldest first or as sorted; what is not over is looked at before."""
    home, choice = session.home, request.choice
    index = home.index
    if choice.user not in (None, user_name()):
        index = _shared(session, choice)
    else:
        home.sync()
        look_at_open(session)
    asked = asked_of(index, request)
    found = index.chosen(asked.condition, asked.order, request.limit)
    if asked.order == NEWEST_FIRST:
        found.reverse()
    if request.tree:
        found = _with_points(index, found)
    return FoundRuns(tuple(found), asked.columns, request.tree)


@dataclass(frozen=True)
class AskedOfIndex:
    """A search as the index is asked for it."""

    condition: RunCondition
    order: RunOrder
    columns: tuple[str, ...]


def asked_of(index: Index, request: RunSearch) -> AskedOfIndex:
    """Return what a search asks of an index; names are looked up among those that its runs have."""
    known = frozenset(index.fact_names())
    columns = tuple(_whole(name, known, "--columns") for name in request.columns)
    order = NEWEST_FIRST
    if request.sort is not None:
        if request.sort.removeprefix("-") == "tag":
            raise refuse("runs have several tags", "`--where tag=A` chooses by them", field="--sort")
        order = RunOrder(_whole(request.sort.removeprefix("-"), known, "--sort"), request.sort.startswith("-"))
    conditions = [request.choice.condition()]
    if request.where is not None:
        conditions.append(condition_of(parse_filter(request.where), known, user_name()))
    # A sweep has neither results nor a point of its matrix: its points have.
    if request.where is None and not any(name.partition(".")[0] in PLACES for name in (order.name, *columns)):
        conditions.append(NO_POINTS)
    return AskedOfIndex(both(*conditions), order, columns)


def _shared(session: Session, choice: RunChoice) -> Index:
    """Return an index of what colleagues share, with one's own runs where all are meant."""
    from podwright.launch.finding import recent
    from podwright.runs.index import Index

    return Index.of(recent(session, None, RunChoice(user=choice.user)))


def _with_points(index: Index, found: Sequence[Record]) -> list[Record]:
    """Return runs with their points behind them; a point that was found by itself stands behind its sweep once."""
    rows: dict[str, Record] = {}
    for record in found:
        top = record if record.parent is None else index.record(record.parent) or record
        rows[top.id] = top
        if top is not record:
            rows[record.id] = record
            continue
        points = [index.record(point) for point in index.points(record.id)]
        rows |= {point.id: point for point in sorted(filter(None, points), key=_number)}
    return list(rows.values())


def _number(point: Record) -> tuple[int, str]:
    return len(point.id), point.id


def _whole(name: str, known: Collection[str], field: str) -> str:
    """Return the whole name of a column, or refuse one that says too little."""
    names = whole_name(name, known)
    if len(names) > 1:
        raise refuse(f'"{name}" may be what was varied or what programs told', f"say {' or '.join(names)}", field=field)
    if not names:
        fallback = f"a column is one of {', '.join(FIELDS)}, matrix.NAME, results.NAME"
        hint = did_you_mean(name, bare_names(known), fallback)
        raise refuse(f'no run has "{name}"', hint, field=field)
    return names[0]


@dataclass(frozen=True)
class BestRequest:
    """Among which runs the best is looked for, and by what."""

    name: str
    """A workload's name or a pattern, or a sweep's id."""
    metric: str | None = None
    direction: Literal["highest", "lowest"] | None = None


def best(session: Session, request: BestRequest) -> Record | None:
    """Return the best run that has succeeded, points too; None where no such run told the metric."""
    home = session.home
    home.sync()
    look_at_open(session)
    of_name = f"(id = ? OR parent = ? OR {OF_RUN} 'name' AND value GLOB ?))"
    named = RunCondition(f"{of_name} AND state = 'succeeded'", (request.name,) * 3)
    newest = home.index.chosen(both(named, HAS_RESULTS), NEWEST_FIRST, 1)
    if not newest:
        return None
    metric, direction = _measure(newest[0], request)
    name = f"results.{metric}"
    order = RunOrder(name, direction == "highest")
    found = home.index.chosen(both(named, RunCondition(HAS_FACT, (name,))), order, 1)
    return found[0] if found else None


def _measure(newest: Record, request: BestRequest) -> tuple[str, str]:
    """Return what is compared and which end of it is good: by the goal, else as the metric's name says."""
    goal = newest.goal or {}
    metric = request.metric or goal.get("metric")
    if metric is None:
        names = ", ".join(newest.results) or "none"
        raise refuse("is missing: the runs have no goal", f"their results are {names}", field="--metric")
    if request.direction is not None:
        return metric, request.direction
    if metric == goal.get("metric"):
        return metric, "highest" if goal.get("at_least") is not None else "lowest"
    less = less_is_better(metric)
    if less is None:
        hint = "say which: `--highest` or `--lowest`"
        raise refuse(
            f'whether more or less of "{metric}" is better does not follow from its name', hint, field="--metric"
        )
    return metric, "lowest" if less else "highest"
