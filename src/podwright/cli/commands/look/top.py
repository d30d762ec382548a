"""`top`: the nodes of all active runs, or a whole pod, live."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from podwright import launch
from podwright.cli.commands.pod.hosts import opened
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.live import styled
from podwright.cli.terminal.machines import GpuView, straggler
from podwright.cli.terminal.pod_frame import frame_lines
from podwright.cli.terminal.progress import Progress
from podwright.cli.terminal.status import used_of

if TYPE_CHECKING:
    from podwright.launch import Session

REFRESH_EVERY_S = 2.0
POD_EVERY_S = 5.0
_HEAD = ("run", "step", "loss", "use", "memory", "power", "state")


def top_command(
    pod: Annotated[
        str | None, typer.Argument(metavar="[POD]", help="A whole pod, as its Prometheus sees it.", show_default=False)
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show each node of each active run, or of a pod; once where nobody watches, and with `--json`."""
    if pod is not None:
        return _pod_top(pod, once, as_json)
    with launch.Session.open() as session:
        if as_json:
            return output.print_json([_document(progress) for progress in active(session)])
        if once or not sys.stdout.isatty():
            rows = _table(active(session), output.width_of(sys.stdout))
            return print("\n".join(output.paint(row.text, row.role, sys.stdout) for row in rows), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            _live(lambda width: _table(active(session), width), "", REFRESH_EVERY_S)
    return None


def _pod_top(pod: str, once: bool, as_json: bool) -> None:
    with opened(pod) as bringup:
        if as_json:
            return output.print_json(bringup.frame().as_json())
        if once or not sys.stdout.isatty():
            rows = frame_lines(bringup.frame(), output.width_of(sys.stdout))
            return print("\n".join(output.paint(*row, sys.stdout) for row in rows), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            _live(lambda width: [Row(*row) for row in frame_lines(bringup.frame(), width)], pod, POD_EVERY_S)
    return None


def active(session: Session) -> list[Progress]:
    """Return the runs that have not ended, each with the latest readings of its nodes."""
    progresses = []
    for latest in launch.runs_at_work(session):
        progress = Progress(latest.record)
        progress.take(latest.record, latest.events, latest.samples)
        progresses.append(progress)
    return progresses


def listing(progresses: list[Progress], width: int | None) -> list[str]:
    """Lay out each run with a line per node and one per GPU."""
    return [row.text for row in _table(progresses, width)]


class Row(NamedTuple):
    """A line of the table, and what its colour stands for."""

    text: str
    role: str


def _table(progresses: list[Progress], width: int | None) -> list[Row]:
    if not progresses:
        return [Row("no active runs", "")]
    cells, roles = [], ["dim"]
    for progress in progresses:
        for row, role in _rows(progress):
            cells.append(row)
            roles.append(role)
    return [Row(*row) for row in zip(output.table(_HEAD, cells, width), roles, strict=True)]


def _rows(progress: Progress) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield a row for the run, one for each node below it, and one for each GPU of the node, each with its colour."""
    record = progress.record
    lagging = straggler(progress.gpus())
    yield (record.id, *_training(progress.values), "", "", "", record.state), record.state
    for number in sorted(progress.nodes):
        node = progress.nodes[number]
        memory = used_of(node.values.get("memory_used_bytes"), node.memory_total_bytes)
        use = figures.percent(node.cpu_percent).strip()
        yield (f"  {progress.label(number)}", *_training(progress.told_on(number)), use, memory, "", ""), ""
        for gpu in node.gpus():
            is_last = lagging is not None and gpu[:2] == lagging[:2]
            yield _gpu_row(progress, gpu, is_last), "warn" if is_last else ""


def _gpu_row(progress: Progress, gpu: GpuView, is_last: bool) -> tuple[str, ...]:
    power = "-" if gpu.power_w is None else f"{gpu.power_w:.0f} W"
    memory, mark = used_of(gpu.memory_bytes, gpu.total_bytes), "straggler" if is_last else ""
    training = _training(progress.told_with(gpu.node, gpu.gpu))
    return (f"    gpu {gpu.gpu}", *training, figures.percent(gpu.use).strip(), memory, power, mark)


def _training(values: Mapping[str, float]) -> tuple[str, str]:
    """Return the step, of how many where that is known, and the loss."""
    loss = figures.value(values["loss"]) if "loss" in values else ""
    return figures.how_far(values).removeprefix("step "), loss


def _document(progress: Progress) -> dict[str, Any]:
    """Return a run with its nodes' readings by their full names: a program may want those the table leaves out."""
    nodes = [
        {"node": number, "host": progress.label(number), "values": node.values}
        for number, node in sorted(progress.nodes.items())
    ]
    return {**progress.record.as_json(), "node_values": nodes}


def _live(rows_at: Callable[[int], list[Row]], pod: str, every_s: float) -> None:
    """Show rows again and again, as many as fit; the rest is for `--once`."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            rows = _fitting(rows_at(console.width), console.height - 2, " ".join(filter(None, ("top", pod))))
            head = [Row(f"podwright top {pod} {time.strftime('%H:%M:%S')}  Ctrl-C leaves", "dim"), Row("", "")]
            live.update(styled([[row] for row in (*head, *rows)], console.encoding), refresh=True)
            time.sleep(every_s)


def _fitting(rows: list[Row], height: int, command: str = "top") -> list[Row]:
    """Cut the table to the screen and say how much is below; a straggler is not cut away."""
    if len(rows) <= height:
        return rows
    shown = max(1, height - 1)
    below = [row for row in rows[shown:] if row.role == "warn"][: shown - 1]
    shown -= len(below)
    more = len(rows) - shown - len(below)
    return [*rows[:shown], *below, Row(f"... {more} more; `podwright {command} --once` prints all", "dim")]
