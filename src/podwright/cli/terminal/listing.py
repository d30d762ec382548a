"""Runs as a table: what `ps` prints, and `show` of a sweep. Without the command line library, which takes longest."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from podwright import launch, runs
from podwright.cli.terminal import figures, output
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.launch import FoundRuns, RunChoice, RunSearch
    from podwright.runs import Record

PLACES = ("matrix", "results")
LATEST = 20
"""Runs that are listed when nobody asks for all."""


def list_runs(choice: RunChoice | None = None, limit: int | None = LATEST, as_json: bool = False) -> None:
    """Ask each target once for all its runs and list them, newest last."""
    choice = choice or launch.ANY
    with launch.Session.open() as session:
        records = launch.recent(session, limit, choice)
    if as_json:
        return output.print_json([record.as_json() for record in records])
    if not records and choice.is_any:
        return output.say("no runs", "start one with `podwright run WORKLOAD`")
    return _print(listing(records, output.width_of(sys.stdout)), records)


def list_found(request: RunSearch, as_json: bool = False) -> None:
    """List the runs that a filter chooses, as sorted, with the columns that were asked for."""
    with launch.Session.open() as session:
        found = launch.search(session, request)
    if as_json:
        return output.print_json(found.as_json())
    return _print(found_listing(found, output.width_of(sys.stdout)), found.records)


def _print(lines: Sequence[str], records: Sequence[Record]) -> None:
    if not records:
        return output.say("no runs", "that fit; `podwright ps --all` lists every run")
    return print("\n".join(coloured(lines, records, sys.stdout)))


def found_listing(found: FoundRuns, width: int | None, now_s: float | None = None) -> list[str]:
    """Lay the runs out with the columns that were asked for instead of the outcome; points stand below their sweep."""
    there = {record.id for record in found.records}
    rows = []
    for record in found.records:
        run, state, target, nodes, age, took, came = _row(record, now_s)
        indent = "  " * (found.is_tree and record.parent in there)
        values = [_shown(name, value) for name, value in zip(found.columns, found.values(record), strict=True)]
        rows.append((f"{indent}{run}", state, target, nodes, age, took, *(values or [came])))
    titles = [name.rpartition(".")[2] if name.partition(".")[0] in PLACES else name for name in found.columns]
    return output.table(("run", "state", "target", "nodes", "age", "took", *(titles or ["outcome"])), rows, width)


def _shown(name: str, value: Any) -> str:
    if value is None:
        return figures.NONE
    if name == "created":
        return str(runs.iso(value))
    return figures.value(value)


def coloured(lines: Sequence[str], records: Sequence[Record], stream: TextIO) -> list[str]:
    """Colour the state in each line of a listing, where the stream shows colours."""
    head, *rows = lines
    shown = [output.paint(head, "dim", stream)]
    for line, record in zip(rows, records, strict=True):
        shown.append(line.replace(f"  {record.state} ", f"  {output.paint(record.state, record.state, stream)} ", 1))
    return shown


def listing(records: Sequence[Record], width: int | None, now_s: float | None = None) -> list[str]:
    """Lay the runs out; the last column says what came of each: its results, or why there are none."""
    rows = [_row(record, now_s) for record in records]
    return output.table(("run", "state", "target", "nodes", "age", "took", "outcome"), rows, width)


def points_listing(points: Sequence[Record], width: int | None, now_s: float | None = None) -> list[str]:
    """Lay the points of a sweep out: what was varied instead of what is the same for all."""
    names: dict[str, None] = {}
    for point in points:
        names.update(dict.fromkeys(point.matrix or {}))
    rows = []
    for point in points:
        run, state, _, _, _, took, came = _row(point, now_s)
        varied = [""] * len(names)
        if point.matrix:
            varied = [figures.value(point.matrix[name]) for name in names]
        rows.append((run, state, *varied, took, came))
    return output.table(("run", "state", *names, "took", "outcome"), rows, width)


def _row(record: Record, now_s: float | None) -> tuple[str, ...]:
    # Nobody knows how long a run goes on whose target is silent: it may have ended long ago.
    took_s = figures.seconds_between(record.started_at, record.ended_at or record.silent_since, now_s)
    return (
        record.id,
        record.state,
        record.target,
        str(record.nodes),
        _rough(figures.seconds_between(record.created_at, None, now_s)),
        figures.duration(took_s),
        outcome(record),
    )


def _rough(seconds: float | None) -> str:
    """Return an age in its largest unit only: nobody needs to know that a run is 3 days and 4 hours old."""
    if seconds is None:
        return figures.NONE
    return figures.duration(float(int(seconds))).replace(" s", "s").split()[0]


def outcome(record: Record) -> str:
    """Return the reason of a run that is not well, else its latest results: that of the goal first.

    A sweep has no results of its own; its reason says how many of its points are how far.
    """
    if record.silent_since is not None:
        return f"not answered since {words.clock(record.silent_since)}: {record.silent_why}"
    is_well = record.state == "succeeded" and record.results
    if record.reason and not is_well:
        return record.reason.splitlines()[0]
    shown = figures.results(record.results, 3, (record.goal or {}).get("metric"))
    return f"{_progress(record)}{shown}".rstrip()


def _progress(record: Record) -> str:
    """Return how far a run is that is at work, as its program tells it."""
    if record.state != "running" or not record.progress:
        return ""
    share = record.progress["share"]
    done = "" if share is None else f"{round(100 * share)}%"
    if record.progress["of"] != "run" and done:
        done = f"{done} of {figures.how_far({'epoch': record.progress['epoch']}) or 'this epoch'}"
    return "".join(f"{part}  " for part in (done, figures.time_left(record.progress)) if part)
