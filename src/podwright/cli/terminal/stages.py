"""The stages of a bring-up as they pass: a line for each that is over, and on a terminal what is done just now."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.bringup.apply.playbook import ApplyProgress

_CLEAR = "\r\x1b[K"


class PassingLine:
    """A line that is written over again and again; nothing where no terminal shows it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._is_shown = stream.isatty()

    def show(self, text: str) -> None:
        """Write a text over what stood there."""
        if self._is_shown:
            width = shutil.get_terminal_size((80, 24)).columns - 1
            self.stream.write(_CLEAR + output.clip(output.plain(text), width))
            self.stream.flush()

    def clear(self) -> None:
        """Leave nothing."""
        if self._is_shown:
            self.stream.write(_CLEAR)
            self.stream.flush()


class StageView:
    """Follows a bring-up."""

    def __init__(self, stream: TextIO) -> None:
        self._line = PassingLine(stream)
        self._over = 0
        self._progress: ApplyProgress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._line.clear()
        if self._progress is not None:
            self._tell(self._progress)

    def show(self, progress: ApplyProgress) -> None:
        """Show how far it is."""
        self._progress = progress
        if sum(stage.state != "running" for stage in progress.stages) > self._over:
            self._line.clear()
            self._tell(progress)
        changed = sum(host.changed for host in progress.hosts.values())
        self._line.show(f"{'':<10}{progress.doing}, {changed} changes so far")

    def _tell(self, progress: ApplyProgress) -> None:
        over = [stage for stage in progress.stages if stage.state != "running"]
        for stage in over[self._over :]:
            output.say(stage.name, f"{stage.state}, {stage.changed} changes, {figures.duration(stage.took_s)}")
        self._over = len(over)


@contextmanager
def counting(stream: TextIO, word: str, total: int) -> Iterator[Callable[[str], None]]:
    """Give what is called for each of many things that are done; shows how many are."""
    line = PassingLine(stream)
    done = 0

    def count(name: str) -> None:
        nonlocal done
        done += 1
        line.show(f"{word:<10}{done} of {total}, last {name}")

    try:
        yield count
    finally:
        line.clear()
