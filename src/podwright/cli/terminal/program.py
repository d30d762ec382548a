"""What the program says, as a follower of its run sees it.

One rank's lines as they come; of several ranks a line that they have in common once, with who wrote it. What a program
tells us for our own sake is left out: the status has it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from podwright.pilot.protocol import PROGRESS
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.runs import LogLine

SAME_S = 0.7
"""How long a line waits for the same one of other ranks."""
TOLD = ('{"podwright"', ":::MLLOG ")


@dataclass
class SharedLine:
    """A line and the ranks that wrote it; `since` is when the first of them was heard."""

    text: str
    since: float
    ranks: set[int] = field(default_factory=set)


class ProgramOutput:
    """The lines of the ranks that are wanted, and how far the line is that one of them still writes over.

    `ranks` None means all of `world_size`. Lines come out in the order in which they first came.
    """

    def __init__(
        self, ranks: frozenset[int] | None, world_size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ranks = frozenset(range(world_size)) if ranks is None else ranks
        self._clock = clock
        self._waiting: list[SharedLine] = []
        self._by_text: dict[str, list[SharedLine]] = {}
        self._open: dict[int, str] = {}

    @property
    def open_line(self) -> str:
        """Return the present state of a progress bar: the lowest rank's; nothing where none is open."""
        if not self._open:
            return ""
        return self._open[min(self._open)]

    def take(self, lines: Iterable[LogLine]) -> list[str]:
        """Take what has come; return what is to be shown now."""
        now = self._clock()
        for line in lines:
            if line.rank is None or line.rank not in self._ranks:
                continue
            if line.stream == PROGRESS:
                self._open[line.rank] = line.text
                continue
            self._open.pop(line.rank, None)
            if not line.text.lstrip().startswith(TOLD):
                self._add(line.rank, line.text, now)
        return self._due(now - SAME_S)

    def _add(self, rank: int, text: str, now: float) -> None:
        same = self._by_text.setdefault(text, [])
        for shared in same:
            if rank not in shared.ranks:
                shared.ranks.add(rank)
                return
        same.append(SharedLine(text, now, {rank}))
        self._waiting.append(same[-1])

    def _due(self, before: float) -> list[str]:
        """Return the lines that need not wait any more, up to the first that does."""
        due = 0
        for shared in self._waiting:
            if len(shared.ranks) < len(self._ranks) and shared.since > before:
                break
            due += 1
        shown, self._waiting = self._waiting[:due], self._waiting[due:]
        for shared in shown:
            same = self._by_text[shared.text]
            del same[0]  # of equal lines the first that came is the first that goes
            if not same:
                del self._by_text[shared.text]
        return [self._shown(shared) for shared in shown]

    def rest(self) -> list[str]:
        """Return what still waits when the run is over, and the bars as they were left."""
        shown = [self._shown(shared) for shared in self._waiting]
        self._waiting, self._by_text = [], {}
        bars = [self._shown(SharedLine(text, 0.0, {rank})) for rank, text in sorted(self._open.items())]
        self._open = {}
        return shown + bars

    def _shown(self, shared: SharedLine) -> str:
        """Return the line; where several ranks are wanted, after those that wrote it."""
        if len(self._ranks) == 1:
            return shared.text
        return f"[{words.fold(shared.ranks).replace(', ', ',')}] {shared.text}"
