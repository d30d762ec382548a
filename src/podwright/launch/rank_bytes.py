"""What one rank wrote, as bytes: read in pieces from any place, and searched in turns of a bounded length."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.files.untrusted import open_untrusted
from podwright.pilot.protocol import record_folders
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch.run import Run

PIECE = 1 << 18
SEARCH_S = 2.0
"""The most of a core that one search takes; it says where to go on."""
MAX_HITS = 500
MAX_LINE = 2000


@dataclass(frozen=True)
class LogHit:
    """A line that has the text, and where it begins."""

    offset: int
    text: str


@dataclass(frozen=True)
class LogHits:
    """What one turn of a search found, and where the next goes on; None when all was read."""

    hits: tuple[LogHit, ...]
    next: int | None
    size: int

    def as_json(self) -> dict[str, Any]:
        """Return it as an API has it."""
        rows = [{"offset": hit.offset, "text": hit.text} for hit in self.hits]
        return {"hits": rows, "next": self.next, "size": self.size}


@dataclass(frozen=True)
class _Part:
    folder: Path
    name: str
    begin: int
    size: int


class RankBytes:
    """The files of a rank, one behind another: those of all copies of its node, the older half of each first."""

    def __init__(self, run: Run, rank: int) -> None:
        folder = run.folder
        folder.refuse_stray()
        asked = folder.asked
        if asked.points:
            raise refuse(f"{run.id} has {asked.points} points with logs of their own", field="rank")
        world = asked.nodes * max(1, asked.ranks_per_node)
        if not 0 <= rank < world:
            raise refuse(f"{run.id} has no rank {rank}", f"it has 0 to {world - 1}", field="rank")
        self.rank, self.world = rank, world
        self._parts = list(_parts(folder.path.resolve(), rank // max(1, asked.ranks_per_node), rank))

    @property
    def size(self) -> int:
        """Return how many bytes there are."""
        return sum(part.size for part in self._parts)

    def read(self, begin: int, count: int) -> bytes:
        """Return at most so many bytes from a place on."""
        data = b""
        for part in self._parts:
            inner = begin + len(data) - part.begin
            if 0 <= inner < part.size and len(data) < count:
                data += _bytes_of(part, inner, min(count - len(data), part.size - inner))
        return data

    def search(self, text: str, begin: int = 0, cpu_s: Callable[[], float] = time.thread_time) -> LogHits:
        """Return the lines from a place on that have a text, whatever its case, as far as one turn goes."""
        if not text.strip():
            raise refuse("is empty", "say what is looked for", field="text")
        wanted, until = text.lower().encode(), cpu_s() + SEARCH_S
        hits: list[LogHit] = []
        size, at = self.size, begin
        for offset, line in self._lines(begin):
            if wanted in line.lower():
                hits.append(LogHit(offset, line[:MAX_LINE].decode("utf-8", "replace")))
            at = offset + len(line) + 1
            if len(hits) >= MAX_HITS or cpu_s() > until:
                break
        return LogHits(tuple(hits), at if at < size else None, size)

    def _lines(self, begin: int) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its place; one that is longer than a piece comes in several."""
        offset, rest = begin, b""
        while piece := self.read(offset + len(rest), PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield offset, line
                offset += len(line) + 1
            if len(rest) >= PIECE:
                yield offset, rest
                offset, rest = offset + len(rest), b""
        if rest:
            yield offset, rest


def _parts(run_path: Path, node: int, rank: int) -> Iterator[_Part]:
    begin = 0
    for number, _, path in record_folders(str(run_path / "record")):
        if number != node:
            continue
        for name in (f"rank{rank}.log.1", f"rank{rank}.log"):
            try:
                with open_untrusted(Path(path), name) as file:
                    size = file.seek(0, 2)
            except OSError:
                continue
            yield _Part(Path(path), name, begin, size)
            begin += size


def _bytes_of(part: _Part, begin: int, count: int) -> bytes:
    try:
        with open_untrusted(part.folder, part.name) as file:
            file.seek(begin)
            return file.read(count)
    except OSError:  # it was turned just now: the reader begins anew
        return b""
