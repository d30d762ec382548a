"""`top`: the nodes of all active runs, live."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.progress import Progress

if TYPE_CHECKING:
    from podwright.launch import Session
    from podwright.runs import Record
    from podwright.runs.events import Sample

REFRESH_EVERY_S = 2.0
# The readings of about a minute from a node with eight GPUs; the slowest come every 30 seconds.
TAIL_BYTES = 96 * 1024
_HEAD = ("run", "node", "cpu", "mem", "gpus", "gpu", "gpu mem", "power")


def top_command(
    once: Annotated[bool, typer.Option("--once", help="Print it once and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show each node of each active run; once where nobody watches, and with `--json`."""
    from podwright.launch import Session

    with Session.open() as session:
        if as_json:
            return output.print_json([_document(progress) for progress in active(session)])
        if once or not sys.stdout.isatty():
            return print("\n".join(listing(active(session), output.width_of(sys.stdout))), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            _watch(session)
    return None


def active(session: Session) -> list[Progress]:
    """Return the runs that have not ended, each with the latest readings of its nodes."""
    from podwright import launch

    parts: list[Record] = []
    for record in launch.recent(session, limit=0):
        if not record.is_final:
            whole, points = launch.find(session, record.id).records_anyway()
            parts += points or [whole]
    progresses = [Progress(part) for part in parts if not part.is_final]
    for progress in progresses:
        progress.take(progress.record, [], last_samples(Path(progress.record.folder) / "record"))
    return progresses


def last_samples(record_path: Path) -> list[Sample]:
    """Return what the pilots measured last, from the ends of their files: a run of days has hundreds of megabytes."""
    from podwright.pilot.protocol import parse_line, record_folders
    from podwright.runs.events import parse_sample

    newest = {node: Path(folder) for node, _, folder in record_folders(str(record_path))}
    samples = []
    for folder in newest.values():
        for line in _end_of(folder / "metrics.jsonl").splitlines():
            sample = parse_sample(parse_line(line))
            if sample is not None:
                samples.append(sample)
    return samples


def _end_of(path: Path) -> bytes:
    from podwright.runs.files import open_untrusted

    try:
        with open_untrusted(path.parent, path.name) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            return file.read(TAIL_BYTES)
    except OSError:
        return b""


def listing(progresses: list[Progress], width: int | None) -> list[str]:
    """Lay out a line per node; the run's name stands beside its first node."""
    if not progresses:
        return ["no active runs"]
    return output.table(_HEAD, chain.from_iterable(map(_rows, progresses)), width)


def _rows(progress: Progress) -> list[tuple[str, ...]]:
    record = progress.record
    if not progress.nodes:
        return [(record.id, record.state, "-", "-", "-", "-", "-", "-")]
    first, *others = [_node_row(progress, number) for number in sorted(progress.nodes)]
    return [(record.id, *first), *(("", *row) for row in others)]


def _node_row(progress: Progress, number: int) -> tuple[str, ...]:
    node = progress.nodes[number]
    gpus = len(node.gpus("utilization_percent"))
    power = node.gpu_power_w
    return (
        progress.label(number),
        figures.percent(node.cpu_percent).strip(),
        figures.size(node.values.get("memory_used_bytes")),
        str(gpus or "-"),
        figures.percent(node.gpu_percent).strip(),
        figures.size(node.gpu_memory_bytes),
        "-" if power is None else f"{power:.0f} W",
    )


def _document(progress: Progress) -> dict[str, Any]:
    """Return a run with its nodes' readings by their full names: a program may want those the table leaves out."""
    nodes = [
        {"node": number, "host": progress.label(number), "values": node.values}
        for number, node in sorted(progress.nodes.items())
    ]
    return {**progress.record.as_json(), "node_values": nodes}


def _watch(session: Session) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            lines = _fitting(listing(active(session), console.width), console.height - 2)
            clock = time.strftime("%H:%M:%S")
            live.update(Text("\n".join([f"podwright top  {clock}  Ctrl-C leaves", "", *lines])), refresh=True)
            time.sleep(REFRESH_EVERY_S)


def _fitting(lines: list[str], height: int) -> list[str]:
    """Cut the table to the screen and say how much is below."""
    if len(lines) <= height:
        return lines
    shown = max(1, height - 1)
    return [*lines[:shown], f"... {len(lines) - shown} more; `podwright top --once` prints all"]
