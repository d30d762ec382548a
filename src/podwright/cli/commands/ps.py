"""`ps`: the runs there are, as a table."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output


def ps_command(
    everything: Annotated[bool, typer.Option("--all", "-a", help="List all runs, not only the latest 20.")] = False,
    as_json: AsJson = False,
) -> None:
    """Asks each target once for all its runs and lists them, newest last."""
    from podwright import launch
    from podwright.launch import Session

    found = launch.recent(Session.open(), limit=None if everything else 20)
    if as_json:
        return output.print_json([record.as_json() for record in found])
    if not found:
        return output.say("no runs", "start one with `podwright run WORKLOAD`")
    records = [{**record.as_json(), "goal": record.goal} for record in found]
    return print("\n".join(listing(records, output.width_of(sys.stdout))))


def listing(records: list[dict[str, Any]], width: int | None, now: datetime | None = None) -> list[str]:
    """Lays the runs out; the last column says what came of each: its results, or why there are none."""
    rows = [_row(record, now) for record in records]
    return output.table(("run", "state", "target", "nodes", "age", "took", "outcome"), rows, width)


def points_listing(points: list[dict[str, Any]], width: int | None, now: datetime | None = None) -> list[str]:
    """Lays the points of a sweep out: what was varied instead of what is the same for all."""
    names = list(dict.fromkeys(name for point in points for name in point["matrix"] or {}))
    rows = []
    for point in points:
        run, state, _, _, _, took, came = _row(point, now)
        varied = [figures.value(point["matrix"][name]) if point["matrix"] else "" for name in names]
        rows.append((run, state, *varied, took, came))
    return output.table(("run", "state", *names, "took", "outcome"), rows, width)


def _row(record: dict[str, Any], now: datetime | None) -> tuple[str, ...]:
    took = figures.seconds_between(record["started_at"], record["ended_at"], now)
    return (
        record["id"],
        record["state"],
        record["target"],
        str(record["nodes"]),
        _rough(figures.seconds_between(record["created_at"], None, now)),
        figures.duration(took),
        outcome(record),
    )


def _rough(seconds: float | None) -> str:
    """Gives an age in its largest unit only: nobody needs to know that a run is 3 days and 4 hours old."""
    return figures.duration(None if seconds is None else float(int(seconds))).replace(" s", "s").split()[0]


def outcome(record: dict[str, Any]) -> str:
    """Gives the reason of a run that is not well, else its latest results: that of the goal when there is one.

    A sweep has no results of its own; its reason says how many of its points are how far.
    """
    results = record.get("results") or {}
    if record.get("reason") and (record["state"] not in ("succeeded", "running") or not results):
        return str(record["reason"]).splitlines()[0]
    metric = str((record.get("goal") or {}).get("metric"))
    return figures.results({metric: results[metric]} if metric in results else results, limit=3)
