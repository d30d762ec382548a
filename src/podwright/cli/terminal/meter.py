"""One line on stderr that tells how far long work is; only a person at a terminal sees it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from podwright.cli.terminal import figures
from podwright.cli.terminal.output import WORD_WIDTH

_EVERY_S = 0.1
_BAR = 30


class Meter:
    """Counts up to a total, or without one; within a `with` block, which leaves no line behind.

    `figure` writes a number with its unit, where a noun alone is none.
    """

    def __init__(
        self, word: str, noun: str = "", figure: Callable[[int], str] = str, stream: TextIO | None = None
    ) -> None:
        self._word, self._noun, self._figure = word, noun, figure
        self._stream = stream or sys.stderr
        self._drawn_at = 0.0

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._drawn_at:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, done: int, total: int | None = None, aside: str = "") -> None:
        """Show how much is done, ten times a second at most, and what else there is to say."""
        now = time.monotonic()
        if not self._stream.isatty() or now - self._drawn_at < _EVERY_S:
            return
        self._drawn_at = now
        self._stream.write(f"\r{self.line(done, total, aside)}\x1b[K")
        self._stream.flush()

    def line(self, done: int, total: int | None, aside: str = "") -> str:
        """Return the line for so much done."""
        parts = [self._figure(done)]
        if total:
            filled, rest = figures.bar(done / total, _BAR)
            parts = [f"{filled}{rest} ", self._figure(done), "of", self._figure(total)]
        if self._noun:
            parts.append(self._noun)
        text = f"{self._word:<{WORD_WIDTH}}{' '.join(parts)}"
        return f"{text}, {aside}" if aside else text
