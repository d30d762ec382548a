"""Runs as a table: what `ps` prints, and `show` of a sweep. Without the command line library, which takes longest."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from podwright import launch
from podwright.cli.terminal import figures, output
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.launch import RunChoice
    from podwright.runs import Record

LATEST = 20
"""Runs that are listed when nobody asks for all."""


def list_runs(choice: RunChoice | None = None, limit: int | None = LATEST, as_json: bool = False) -> None:
    """Ask each target once for all its runs and list them, newest last."""
    choice = choice or launch.ANY
    with launch.Session.open() as session:
        records = launch.recent(session, limit, choice)
    if as_json:
        return output.print_json([record.as_json() for record in records])
    if not records and not choice.is_any:
        return output.say("no runs", "that fit; `podwright ps --all` lists every run")
    if not records:
        return output.say("no runs", "start one with `podwright run WORKLOAD`")
    lines = listing(records, output.width_of(sys.stdout))
    return print("\n".join(coloured(lines, records, sys.stdout)))


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
    share = figures.share_done(record.results) if record.state == "running" else None
    return "" if share is None else f"{round(100 * share)}%  "
