"""`show`: one run, a line per fact."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from podwright import launch, runs
from podwright.cli.commands.look import show_folder
from podwright.cli.options import AsJson, RunRef
from podwright.cli.terminal import figures, output, verdict
from podwright.cli.terminal.listing import coloured, points_listing
from podwright.spec.hostlist import fold_hosts

if TYPE_CHECKING:
    from podwright.analysis.failure_groups import FailureGroup
    from podwright.runs import Record


def show_command(run: RunRef, as_json: AsJson = False) -> None:
    """Print what is known of a run now; the exit code says that it was printed, not how the run is."""
    with launch.Session.open() as session:
        shown = launch.overview_of(launch.find_to_read(session, run))
    if as_json:
        return output.print_json(shown.as_json())
    record, points = shown.records
    happened = [] if points else show_folder.happened(shown)
    lines = [*facts(record, len(points), shown.reasons), *show_folder.asked_for(shown.folder), *happened]
    if shown.goodput:
        lines.append(("goodput", "\n".join(shown.goodput)))
    if shown.straggler is not None:
        lines.append(("straggler", shown.straggler.text))
    if shown.failures:
        lines.append(("failures", "\n".join(_failure(group) for group in shown.failures)))
    lines.append(("size", figures.size(shown.size_bytes)))
    for word, text in lines:
        print("\n".join(output.aligned(word, text, sys.stdout)))
    if points:
        listed = points_listing(points, output.width_of(sys.stdout))
        print("\n" + "\n".join(coloured(listed, points, sys.stdout)))
    return None


def _failure(group: FailureGroup) -> str:
    more = f" and {group.count - 3} more" if group.count > 3 else ""
    return f"{group.text}: {', '.join(group.points[:3])}{more}\n  {group.line}".rstrip()


def facts(record: Record, points: int, why: Sequence[str], now_s: float | None = None) -> Iterator[tuple[str, str]]:
    """Yield the facts of a run as (word, text), leaving out what there is nothing to say about; `why` if it failed."""
    point_of = f", point of {record.parent}" if record.parent else ""
    yield "run", f"{record.id}{point_of}"
    if why:
        yield from verdict.explanation(record, why)
    else:
        yield _state(record, points, now_s)
    if record.silence:
        yield "silent", record.silence
    if record.matrix:
        yield "matrix", "  ".join(f"{name} {figures.value(value)}" for name, value in record.matrix.items())
    yield "target", record.target
    yield "nodes", _nodes(record, points)
    yield "times", _times(record)
    if results := figures.results(record.results):
        yield "results", results
    if cost := record.cost:
        yield "cost", f"{figures.value(cost['amount'])} {cost['currency']} ({cost['origin']})"
    if record.tags:
        yield "tags", " ".join(record.tags)
    if record.note:
        yield "note", record.note
    yield "folder", record.folder


def _state(record: Record, points: int, now_s: float | None) -> tuple[str, str]:
    if record.is_final:
        return verdict.sentence(record, record.goal, points)
    since_s = figures.seconds_between(record.started_at or record.created_at, None, now_s)
    reason = f", {record.reason}" if record.reason else ""
    return record.state, f"for {figures.duration(since_s)}{reason}"


def _nodes(record: Record, points: int) -> str:
    text = str(record.nodes)
    if record.spares:
        text += f" and {figures.count(record.spares, 'spare')}"
    if record.world_size:
        text += f", world size {record.world_size}"
    if record.attempts > 1 and not points:
        text += f", {record.attempts} attempts"
    if record.hosts:
        text += f": {fold_hosts(list(dict.fromkeys(record.hosts)))}"
    return text


def _times(record: Record) -> str:
    times = {"created": record.created_at, "started": record.started_at, "ended": record.ended_at}
    return "\n".join(f"{name:<8}{runs.iso(time_s)}" for name, time_s in times.items() if time_s is not None)
