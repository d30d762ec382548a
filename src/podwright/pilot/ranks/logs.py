"""Log per rank, bounded, and one merged stream per node."""

from __future__ import annotations

import os
from collections import deque
from contextlib import suppress
from typing import Callable, Deque, Dict, List, Sequence

from ..masking import Masker
from ..protocol import PROGRESS
from ..system.plain_files import open_to_add

TAIL_LINES, STACK_LINES = 30, 120
LINE_BYTES = 64 * 1024
"""A longer line is cut here, so that a rank that never ends a line cannot fill the pilot's memory."""
LAUNCHER = "-"
PROGRESS_S = 1.0
"""Between two states of a line that a program writes over again and again, such as a progress bar."""


class BoundedFile:
    """A file that keeps the newest bytes: at half its bound it becomes `.1`, replacing the `.1` before it."""

    def __init__(self, path: str, limit_bytes: int) -> None:
        self._path = path
        self._half = max(limit_bytes // 2, 1)
        self._file = open_to_add(path)
        self._size = os.fstat(self._file).st_size
        self.lost_bytes = 0

    def write(self, data: bytes) -> None:
        """Append, turning the file over at half its bound; a full disk loses log lines, never the run."""
        try:
            if self._size + len(data) > self._half and self._size:
                self._turn()
            self._size += os.write(self._file, data)
        except OSError:
            self.lost_bytes += len(data)

    def _turn(self) -> None:
        """Begin a new file; the old descriptor goes last, since its number may be another file's once it is closed."""
        # It was turned over already, where the disk was too full for a new file then.
        with suppress(FileNotFoundError):
            os.replace(self._path, self._path + ".1")
        fresh = open_to_add(self._path)
        os.close(self._file)
        self._file, self._size = fresh, 0

    def close(self) -> None:
        os.close(self._file)


class RankLog:
    """What one rank prints: its own file, the node's merged stream, and the last lines in memory."""

    def __init__(self, name: str, file: BoundedFile, node: NodeLog) -> None:
        self.name = name
        self._file = file
        self._node = node
        self._rest: Dict[str, bytes] = {"o": b"", "e": b""}
        self._shown: Dict[str, float] = {}
        self.tail: Deque[bytes] = deque(maxlen=TAIL_LINES)

    def feed(self, stream: str, data: bytes) -> List[bytes]:
        """Keep whole lines as they come; return them, so that results can be read from them."""
        data = self._rest[stream] + data
        end = data.rfind(b"\n") + 1
        if not end and len(data) > LINE_BYTES + self._node.mask.overlap:
            # Masked first, and the end held back: the cut must not go through a secret.
            data = self._node.mask(data)
            end = max(len(data) - self._node.mask.overlap, 0)
        self._rest[stream] = data[end:]
        lines = self._keep(stream, data[:end]) if end else []
        return lines + self._progress(stream)

    def _progress(self, stream: str) -> List[bytes]:
        """Show the last state of a line that is written over, now and then; its states before it are forgotten.

        A state ends where the next begins. Secrets are masked first, and as much as one may be long is held back.
        What is returned is for values only: there the state that has just begun counts, where it has a text, since
        the one before it is as old as the bar is slow.
        """
        if b"\r" not in self._rest[stream] or not self._is_due(stream):
            return []
        rest = self._node.mask(self._rest[stream])
        end = rest.rfind(b"\r", 0, max(len(rest) - self._node.mask.overlap, 0))
        text = last_state(rest[: max(end, 0)])
        if not text.strip():
            return []
        latest = self._rest[stream].rpartition(b"\r")[2]
        self._shown[stream], self._rest[stream] = self._node.now(), rest[end:]
        self._node.merge(self.name, PROGRESS, [text])
        return [latest if latest.strip() else text]

    def expect_stack(self) -> None:
        """Hold more lines than a failure needs: where each thread of a rank was."""
        self.tail = deque(maxlen=STACK_LINES)

    def _is_due(self, stream: str) -> bool:
        return not 0 <= self._node.now() - self._shown.get(stream, 0.0) < PROGRESS_S

    def end(self) -> List[bytes]:
        """Keep a last line that was not ended; return it as `feed` does."""
        lines: List[bytes] = []
        for stream, rest in self._rest.items():
            if rest:
                lines += self._keep(stream, rest + b"\n")
        self._rest = {"o": b"", "e": b""}
        return lines

    def _keep(self, stream: str, data: bytes) -> List[bytes]:
        data = self._node.mask(data)
        if b"\r" in data:
            states = [last_state(line) for line in data.split(b"\n")]
            data = b"\n".join(states)
        self._file.write(data)
        lines = data.splitlines()
        self._node.merge(self.name, stream, lines)
        self.tail.extend(lines)
        return lines

    def close(self) -> None:
        self._file.close()


def last_state(line: bytes) -> bytes:
    """Return what a terminal would show in the end of a line that is written over by carriage returns."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


class NodeLog:
    """The merged stream of a node and the logs of its ranks; lives as long as the pilot, over all attempts."""

    def __init__(self, folder: str, limit_bytes: int, mask: Masker, now: Callable[[], float]) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._merged = BoundedFile(os.path.join(folder, "merged.log"), limit_bytes)
        self.now = now
        self.mask = mask

    def rank(self, name: str) -> RankLog:
        """Open the log of a rank by its number, or of the launcher's own words by `-`."""
        file = "launcher.log" if name == LAUNCHER else f"rank{name}.log"
        return RankLog(name, BoundedFile(os.path.join(self._folder, file), self._limit), self)

    def merge(self, name: str, stream: str, lines: Sequence[bytes]) -> None:
        head = f"{self.now():.3f} {name} {stream} ".encode()
        self._merged.write(b"".join(head + line + b"\n" for line in lines))

    @property
    def lost_bytes(self) -> int:
        return self._merged.lost_bytes

    def close(self) -> None:
        self._merged.close()
