"""The live view of a run: where it is shown, and the picture that is drawn of it.

The picture is lines of (text, role) pieces, made by pure functions, so that it can be looked at without a terminal.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from podwright.cli.terminal import figures, output
from podwright.cli.terminal.machines import NodeView, mean_use, slowest
from podwright.cli.terminal.output import WORD_WIDTH, clip, plain
from podwright.cli.terminal.progress import Progress
from podwright.cli.terminal.status import Line, progress_line, status

if TYPE_CHECKING:
    from podwright.runs import Record

LINE_EVERY_S = 10.0
REDRAW_EVERY_S = 0.5
MAX_NODES = 8
MAX_COLUMNS = 160
MAX_LINES = 500
"""Of what came between two looks: a terminal shows no more, and a person reads less."""

Draw = Callable[[int], Sequence[Line]]

_STYLES = {
    "bar": "cyan",
    "cpu": "cyan",
    "gpu": "green",
    "dim": "dim",
    "running": "cyan",
    "succeeded": "green",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
    "warn": "yellow",
}
_ASCII = str.maketrans("━╌▁▂▃▄▅▆▇█", "=-_.,:;+*#")


class View(Protocol):
    """What a follower needs of a place to show a run."""

    def __enter__(self) -> View:
        """Open the view."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it and leave the terminal as it was."""

    def say(self, word: str, text: str) -> None:
        """Print a line that stays."""

    def write(self, lines: Sequence[str]) -> None:
        """Print what the program said."""

    def show(self, draw: Draw, news: str) -> None:
        """Show the present state: `draw` makes the picture for a width, `news` is the same in a few words."""


class PlainView:
    """Writes a line when there is progress, at most every ten seconds: a log file shall stay readable."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, said: TextIO | None = None) -> None:
        self._clock, self._said = clock, said
        self._next = clock()
        self._last = ""

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, word: str, text: str) -> None:
        """Write the line to stderr."""
        output.say(word, text)

    def write(self, lines: Sequence[str]) -> None:
        """Write the lines as they are."""
        write_lines(lines, self._said or sys.stdout)

    def show(self, draw: Draw, news: str) -> None:
        """Write the news when it is new and the last such line is old enough."""
        if news and news != self._last and self._clock() >= self._next:
            self._last = news
            self._next = self._clock() + LINE_EVERY_S
            output.say("", news)


class LiveView:
    """Draws at the foot of the terminal, at most twice a second, and only what differs."""

    def __init__(self, said: TextIO | None = None) -> None:
        self._said = said
        self._live: Any = None
        self._drawn: Sequence[Line] = ()
        self._next = 0.0

    def __enter__(self) -> LiveView:
        from rich.console import Console
        from rich.live import Live

        # A killed command must not leave the cursor hidden.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
        console = Console(stderr=True, highlight=False, soft_wrap=False)
        self._live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, word: str, text: str) -> None:
        """Print the line above the picture."""
        from rich.text import Text

        wrapped = output.wrapped(text, self._live.console.width - WORD_WIDTH)
        for line in output.aligned(word, wrapped, sys.stderr):
            self._live.console.print(Text.from_ansi(line), soft_wrap=True)

    def write(self, lines: Sequence[str]) -> None:
        """Print the lines above the picture; to where they were sent, if that is no terminal."""
        from rich.text import Text

        if self._said is not None and not self._said.isatty():
            return write_lines(lines, self._said)
        left_out = len(lines) - MAX_LINES
        if left_out > 0:
            lines = [f"... {left_out} lines; `podwright logs` has them", *lines[-MAX_LINES:]]
        if lines:
            shown = [output.foreign_line(line, sys.stderr) for line in lines]
            self._live.console.print(Text.from_ansi("\n".join(shown)), soft_wrap=True)
            self._next = 0.0  # a bar that has become a line is not shown twice
        return None

    def show(self, draw: Draw, news: str) -> None:
        """Draw the picture unless it was drawn a moment ago or nothing in it has changed."""
        now = time.monotonic()
        if now < self._next:
            return
        lines = draw(min(self._live.console.width, MAX_COLUMNS))
        self._next = now + REDRAW_EVERY_S
        if lines != self._drawn:
            self._drawn = lines
            self._live.update(styled(lines, self._live.console.encoding), refresh=True)


def write_lines(lines: Sequence[str], stream: TextIO) -> None:
    """Write the program's lines where they are data, or talk beside a JSON document."""
    for line in lines:
        print(output.foreign_line(line, stream), file=stream)
    stream.flush()


def view_for(stream: TextIO, said: TextIO | None = None) -> View:
    """Return the live view where a person looks at a terminal that can move its cursor, else the plain one.

    `said` is where the program's lines go; left out: to stdout.
    """
    if stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return LiveView(said)
    return PlainView(said=said)


def styled(lines: Sequence[Line], encoding: str = "utf-8") -> Any:
    """Return the lines as one rich text; a line is never wrapped, since that would break the columns.

    A terminal that knows no bars and blocks gets the nearest ASCII.
    """
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        if number > 0:
            text.append("\n")
        for piece, role in line:
            if "utf" not in encoding:
                piece = piece.translate(_ASCII)
            text.append(piece, style=_STYLES.get(role, ""))
    return text


def elapsed(record: Record) -> float | None:
    """Return the seconds since the run began, or since it was asked for while it waits."""
    return figures.seconds_between(record.started_at or record.created_at, record.ended_at)


def foot(progress: Progress, elapsed_s: float | None, open_line: str, width: int) -> list[Line]:
    """Draw what stays below the program's output: the line it still writes over, if any, and the status."""
    lines = status(progress, elapsed_s, width)
    if open_line:
        return [[(clip(plain(open_line), width), "")], *lines]
    return lines


def picture(progress: Progress, elapsed_s: float | None, width: int) -> list[Line]:
    """Draw the progress line and a line per node; many nodes are folded into a summary."""
    nodes = [progress.nodes[number] for number in sorted(progress.nodes)]
    measured = [node for node in nodes if node.cpu or node.gpu]
    first = progress_line(progress, elapsed_s, width)
    if len(measured) > MAX_NODES:
        return [first, *_summary(progress, measured, width)]
    return [first, *_node_lines(progress, measured, width)]


def _node_lines(progress: Progress, nodes: list[NodeView], width: int) -> list[Line]:
    labels = [clip(plain(progress.label(node.number)), 20) for node in nodes]
    label_width = max([WORD_WIDTH, *(len(label) + 1 for label in labels)])
    # What is not curve has a fixed width: label, percentages, memory and, with GPUs, their share of the line.
    room = width - label_width - 24
    has_gpu = any(node.gpu for node in nodes)
    if has_gpu:
        room = (width - label_width - 59) // 2
    curve_width = max(4, min(30, room))
    pairs = zip(nodes, labels, strict=True)
    return [_node_line(node, label.ljust(label_width), curve_width, has_gpu) for node, label in pairs]


def _node_line(node: NodeView, label: str, curve_width: int, has_gpu: bool) -> Line:
    memory = figures.size(node.values.get("memory_used_bytes"))
    line: Line = [
        (label, "dim"),
        ("cpu ", ""),
        (figures.curve(node.cpu, curve_width), "cpu"),
        (f" {figures.percent(node.cpu_percent)}  mem {memory:<9}", ""),
    ]
    if has_gpu:
        line += _gpu_pieces(node, curve_width)
    return line


def _gpu_pieces(node: NodeView, curve_width: int) -> Line:
    """Draw the mean of the node's GPUs and, of several, the least used: one that lags is lost in a mean."""
    gpus = node.gpus()
    label, least, last = "gpu", "", slowest(gpus)
    if len(gpus) > 1 and last is not None:
        label, least = f"{len(gpus)} gpu", f"least {figures.percent(last.use)} #{last.gpu}"
    return [
        (f"  {label:<5} ", ""),
        (figures.curve(node.gpu, curve_width), "gpu"),
        (f" {figures.percent(mean_use(gpus))} {least:<13}", ""),
        (f" {figures.size(node.gpu_memory_bytes)}", ""),
    ]


def _summary(progress: Progress, nodes: list[NodeView], width: int) -> list[Line]:
    """Fold many nodes: the median of each figure, and the node that is furthest behind."""
    head = f"{len(nodes)} nodes"
    power = [node.gpu_power_w for node in nodes if node.gpu_power_w is not None]
    if power:
        head += f", GPUs draw {sum(power) / 1000:.1f} kW"
    cpu = _folded(progress, "cpu", [(node.cpu_percent, node) for node in nodes])
    gpu = _folded(progress, "gpu", [(node.gpu_percent, node) for node in nodes])
    lines = []
    word = "nodes"
    for text in filter(None, (head, cpu, gpu)):
        lines.append([(f"{word:<{WORD_WIDTH}}", "dim"), (clip(text, width - WORD_WIDTH), "")])
        word = ""
    return lines


def _folded(progress: Progress, name: str, readings: Sequence[tuple[float | None, NodeView]]) -> str:
    from podwright.analysis.statistics import median

    known = [(value, node) for value, node in readings if value is not None]
    if not known:
        return ""
    values = [value for value, _ in known]
    least, node = min(known, key=lambda pair: pair[0])
    row = figures.curve(figures.spread(values, 24), 24)
    lowest = f"{figures.percent(least)} {progress.label(node.number)}"
    return f"{name} {row} median {figures.percent(median(values))}  least {lowest}"
