"""One moment of a pod as a terminal shows it: what all of it does, then a line for each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.watch import FrameNode, PodFrame

_HEAD = ("node", "gpus", "held", "cpu", "mem", "power", "heat", "links", "in/out", "")
_MAX_BARS = 16


def frame_lines(frame: PodFrame, width: int | None) -> Iterator[tuple[str, str]]:
    """Yield lines with the role of their colour: the pod's own first, then those of its nodes."""
    for line in _summary(frame):
        yield output.clip(line, width), ""
    if not frame.nodes:
        return
    yield "", ""
    rows = output.table(_HEAD, [_row(node) for node in frame.nodes], width)
    yield rows[0], "dim"
    for node, row in zip(frame.nodes, rows[1:], strict=True):
        yield row, "warn" if node.alerts or node.up is False else ""


def _summary(frame: PodFrame) -> Iterator[str]:
    gpus = list(chain.from_iterable(node.gpus for node in frame.nodes))
    held = sum(node.held for node in frame.nodes)
    power = sum(node.power_w or 0.0 for node in frame.nodes)
    use = sum(gpu.utilization for gpu in gpus) / len(gpus) if gpus else None
    answering = sum(node.up is not False for node in frame.nodes)
    yield f"{frame.pod}  {answering} of {figures.count(len(frame.nodes), 'node')}, {_alerts(frame)}"
    if gpus:
        busy = figures.percent(_percent(use)).strip()
        yield f"gpus      {held} of {len(gpus)} held, {busy} busy, {power / 1000:.1f} kW"
    links, up = sum(node.links for node in frame.nodes), sum(node.links_up for node in frame.nodes)
    if links:
        yield f"links     {up} of {links} up"
    if frame.jobs:
        yield f"queue     {_counts(frame.jobs)}"
    if frame.states:
        yield f"slurm     {_counts(frame.states)}"
    runs = Counter((gpu.run or "", gpu.user or "") for gpu in gpus if gpu.run or gpu.user)
    for (run, user), count in runs.most_common(5):
        yield f"runs      {output.plain(run) or 'a job'} of {output.plain(user)}: {figures.count(count, 'GPU')}"


def _alerts(frame: PodFrame) -> str:
    if not frame.critical and not frame.warnings:
        return "nothing fires"
    return f"{frame.critical} critical, {figures.count(frame.warnings, 'warning')}; `podwright alerts {frame.pod}`"


def _counts(states: object) -> str:
    found = states if isinstance(states, dict) else {}
    return ", ".join(f"{count} {output.plain(state)}" for state, count in sorted(found.items()) if count)


def _row(node: FrameNode) -> tuple[str, ...]:
    shown = [gpu.utilization for gpu in node.gpus[:_MAX_BARS]]
    bars = figures.curve(shown, len(shown), top=1.0)
    traffic = ""
    if node.received_bytes_s is not None or node.sent_bytes_s is not None:
        traffic = f"{_rate(node.received_bytes_s)}/{_rate(node.sent_bytes_s)}"
    return (
        node.host,
        bars or "-",
        f"{node.held}/{len(node.gpus)}" if node.gpus else "-",
        figures.percent(_percent(node.cpu)).strip(),
        figures.percent(_percent(_share(node.memory_used_bytes, node.memory_bytes))).strip(),
        "-" if node.power_w is None else f"{node.power_w:.0f} W",
        "-" if node.temperature_c is None else f"{node.temperature_c:.0f} C",
        f"{node.links_up}/{node.links}" if node.links else "-",
        traffic or "-",
        "down" if node.up is False else " ".join(node.alerts),
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


def _rate(bytes_s: float | None) -> str:
    """Return bytes a second in a few letters: 12G."""
    value = bytes_s or 0.0
    for unit in ("", "k", "M", "G"):
        if value < 1000:
            return f"{value:.0f}{unit}"
        value /= 1000
    return f"{value:.0f}T"
