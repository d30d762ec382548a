"""Where a followed run is shown: a live picture on a terminal, an occasional line elsewhere."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol

from podwright.cli.terminal import figures, output
from podwright.cli.terminal.live import Line

LINE_EVERY_S = 10.0
REDRAW_EVERY_S = 0.5

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
}


_ASCII = str.maketrans("━╌▁▂▃▄▅▆▇█", "=-_.,:;+*#")


class View(Protocol):
    """What a follower needs of a place to show a run."""

    def __enter__(self) -> View:
        """Opens the view."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes it and leaves the terminal as it was."""

    def say(self, word: str, text: str) -> None:
        """Prints a line that stays."""

    def show(self, draw: Callable[[int], Sequence[Line]], news: str) -> None:
        """Shows the present state: `draw` makes the picture for a width, `news` is the same in a few words."""


class PlainView:
    """Writes a line when there is progress, at most every ten seconds: a log file shall stay readable."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock()
        self._last = ""

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def say(self, word: str, text: str) -> None:
        """Writes the line to stderr."""
        output.say(word, text)

    def show(self, draw: Callable[[int], Sequence[Line]], news: str) -> None:
        """Writes the news when it is new and the last such line is old enough."""
        if news and news != self._last and self._clock() >= self._next:
            self._last, self._next = news, self._clock() + LINE_EVERY_S
            output.say("", news)


class LiveView:
    """Draws at the foot of the terminal, at most twice a second, and only what differs."""

    def __init__(self) -> None:
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
        """Prints the line above the picture."""
        from rich.text import Text

        for line in output.aligned(word, text, sys.stderr):
            self._live.console.print(Text.from_ansi(line), soft_wrap=True)

    def show(self, draw: Callable[[int], Sequence[Line]], news: str) -> None:
        """Draws the picture unless it was drawn a moment ago or nothing in it has changed."""
        now = time.monotonic()
        if now < self._next:
            return
        lines = draw(min(self._live.console.width, 120))
        self._next = now + REDRAW_EVERY_S
        if lines != self._drawn:
            self._drawn = lines
            self._live.update(styled(lines, self._live.console.encoding), refresh=True)


def styled(lines: Sequence[Line], encoding: str = "utf-8") -> Any:
    """Gives the lines as one rich text; a line is never wrapped, since that would break the columns.

    A terminal that knows no bars and blocks gets the nearest ASCII.
    """
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for number, line in enumerate(lines):
        text.append("\n" if number else "")
        for piece, role in line:
            text.append(piece if "utf" in encoding else piece.translate(_ASCII), style=_STYLES.get(role, ""))
    return text


def view_for_terminal() -> View:
    """Gives the live view where a person looks at a terminal that can move its cursor, else the plain one."""
    import os

    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        return LiveView()
    return PlainView()


def elapsed(record: Mapping[str, Any]) -> float | None:
    """Gives the seconds since the run began, or since it was asked for while it waits."""
    return figures.seconds_between(record.get("started_at") or record.get("created_at"), record.get("ended_at"))
