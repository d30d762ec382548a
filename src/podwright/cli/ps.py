"""`ps`: the runs there are, as a table."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Annotated, Any

import typer

from podwright.cli import figures, talk
from podwright.cli.options import AsJson


def ps_command(
    everything: Annotated[bool, typer.Option("--all", "-a", help="List all runs, not only the latest 20.")] = False,
    as_json: AsJson = False,
) -> None:
    """Asks each target once for all its runs and lists them, newest last."""
    from podwright import launch
    from podwright.runs import Home

    found = launch.recent(Home.open(), limit=None if everything else 20)
    if as_json:
        return talk.print_json([record.as_json() for record in found])
    if not found:
        return talk.say("no runs", "start one with `podwright run WORKLOAD`")
    records = [{**record.as_json(), "goal": record.goal} for record in found]
    return print("\n".join(listing(records, talk.width_of(sys.stdout))))


def listing(records: list[dict[str, Any]], width: int | None, now: datetime | None = None) -> list[str]:
    """Lays the runs out; the last column says what came of each: its results, or why there are none."""
    rows = [_row(record, now) for record in records]
    return talk.table(("run", "state", "target", "nodes", "age", "took", "outcome"), rows, width)


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
    """Gives the reason of a run that is not well, else its latest results: that of the goal when there is one."""
    if record["state"] not in ("succeeded", "running") and record.get("reason"):
        return str(record["reason"]).splitlines()[0]
    results = record.get("results") or {}
    metric = str((record.get("goal") or {}).get("metric"))
    return figures.results({metric: results[metric]} if metric in results else results, limit=3)
