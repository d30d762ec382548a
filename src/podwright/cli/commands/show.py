"""`show`: one run, a line per fact."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from podwright.cli.commands.ps import points_listing
from podwright.cli.options import AsJson, RunRef
from podwright.cli.terminal import figures, output, verdict
from podwright.cli.terminal.follow import run_document


def show_command(run: RunRef, as_json: AsJson = False) -> None:
    """Prints what is known of a run now; the exit code says that it was printed, not how the run is."""
    from podwright import launch
    from podwright.launch import Session

    found = launch.find(Session.open(), run)
    document = run_document(found)
    if as_json:
        return output.print_json(document)
    lines = found.explain() if document["state"] in ("failed", "lost") and not document.get("points") else []
    for word, text in facts(document, found.record().goal, lines):
        print("\n".join(output.aligned(word, text, sys.stdout)))
    if document.get("points"):
        print("\n" + "\n".join(points_listing(document["points"], output.width_of(sys.stdout))))
    return None


def facts(
    record: dict[str, Any], goal: dict[str, Any] | None, why: list[str], now: datetime | None = None
) -> Iterator[tuple[str, str]]:
    """Gives the facts of a run as (word, text), leaving out what there is nothing to say about; `why` if it failed."""
    yield "run", record["id"] + (f", point of {record['parent']}" if record.get("parent") else "")
    yield from verdict.explanation(record, why) if why else [_state(record, goal, now)]
    if record.get("matrix"):
        yield "matrix", "  ".join(f"{name} {figures.value(value)}" for name, value in record["matrix"].items())
    yield "target", record["target"]
    yield "nodes", _nodes(record)
    yield "times", _times(record)
    if results := figures.results(record.get("results") or {}):
        yield "results", results
    if cost := record.get("cost"):
        yield "cost", f"{figures.value(cost['amount'])} {cost['currency']} ({cost['origin']})"
    yield "folder", str(record["folder"])


def _state(record: dict[str, Any], goal: dict[str, Any] | None, now: datetime | None) -> tuple[str, str]:
    if record["state"] in verdict.FINAL:
        return verdict.sentence(record, goal)
    since = figures.seconds_between(record.get("started_at") or record["created_at"], None, now)
    reason = f", {record['reason']}" if record.get("reason") else ""
    return record["state"], f"for {figures.duration(since)}{reason}"


def _nodes(record: dict[str, Any]) -> str:
    from podwright.spec.hostlist import fold_hosts

    hosts = list(dict.fromkeys(record.get("hosts") or ()))
    world = f", world size {record['world_size']}" if record.get("world_size") else ""
    where = f": {fold_hosts(hosts)}" if hosts else ""
    attempts = (
        f", {record['attempts']} attempts" if (record.get("attempts") or 0) > 1 and not record.get("points") else ""
    )
    return f"{record['nodes']}{world}{attempts}{where}"


def _times(record: dict[str, Any]) -> str:
    names = (("created", "created_at"), ("started", "started_at"), ("ended", "ended_at"))
    return "\n".join(f"{name:<8}{record[key]}" for name, key in names if record.get(key))
