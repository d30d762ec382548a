"""Which lines of a run's logs are meant."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.launch.run import Run
    from podwright.runs import LogLine


@dataclass(frozen=True)
class LineFilter:
    """What lines have in common; None: any."""

    ranks: frozenset[int] | None = None
    node: int | None = None
    pattern: re.Pattern[str] | None = None
    earliest: float | None = None

    def of(self, lines: Iterable[LogLine]) -> Iterator[LogLine]:
        """Leave out the others."""
        for line in lines:
            if (
                (self.ranks is None or line.rank in self.ranks)
                and (self.node is None or line.node == self.node)
                and (self.earliest is None or line.t >= self.earliest)
                and (self.pattern is None or self.pattern.search(line.text))
            ):
                yield line


def filtered_logs(run: Run, choice: LineFilter, tail: int | None = None, follow: bool = False) -> Iterable[LogLine]:
    """Return the lines that are meant, at most so many of those that are there now; `follow`: and all that come."""
    if follow:
        return followed_lines(run.follow_logs(), choice, tail)
    lines = choice.of(run.logs())
    return lines if tail is None else deque(lines, maxlen=tail)


def followed_lines(batches: Iterable[list[LogLine]], choice: LineFilter, tail: int | None) -> Iterator[LogLine]:
    """Yield the last of the first batch, which are there already, and all that come."""
    for batch in batches:
        yield from deque(choice.of(batch), maxlen=tail)
        tail = None
