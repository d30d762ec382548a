"""The progress of a long build: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

from podwright import lab
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from rich.progress import Progress

    from podwright.lab import BuildOutput


class BuildProgress:
    """Shows how far a build is; nothing is shown where nothing is built."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._lines: BuildOutput | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, total: int) -> None:
        """Show that so many of all packages are compiled."""
        if sys.stderr.isatty():
            return self._draw(done, total)
        self._lines = self._lines or lab.BuildOutput(output.say)
        return self._lines(done, total)

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("build    "), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._bar.start()
        if not self._bar.tasks or self._bar.tasks[-1].total != total:
            self._bar.add_task("build", total=total)
        self._bar.update(self._bar.tasks[-1].id, completed=done)
