"""Append-only JSON lines and a clock that never steps back."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any, Callable, Dict, Optional

from .protocol import Epoch


class Clock:
    """Unix seconds, anchored once: a wall clock that is set back during a run must not disorder its record."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset_s


class Lines:
    """A file of JSON lines; each line is one write, so a kill leaves at most one torn line.

    A full disk must not end a run: lines that could not be written are counted and the loss is told once the file takes
    lines again.
    """

    def __init__(self, path: str, on_loss: Optional[Callable[[int], None]] = None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._lock = threading.Lock()
        self._on_loss = on_loss
        self._torn = os.fstat(self._file).st_size > 0
        self.lost = 0

    def write(self, row: Dict[str, Any]) -> bool:
        data = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            written, lost = self._append(data), self.lost
            if written:
                self.lost = 0
        if written and lost and self._on_loss:
            self._on_loss(lost)
        return written

    def _append(self, data: bytes) -> bool:
        """A line that went in half is closed by a newline before the next, so that only it is lost."""
        if self._torn:
            data = b"\n" + data
        try:
            self._torn = os.write(self._file, data) != len(data)
        except OSError:
            self._torn = True
        self.lost += self._torn
        return not self._torn

    def close(self) -> None:
        os.close(self._file)


class Journal:
    """The events of one pilot process: every row carries time, epoch, node and sequence."""

    def __init__(self, path: str, node: int, clock: Clock) -> None:
        self._lines = Lines(
            path, on_loss=lambda count: self.say("sensor", name="journal", error=f"{count} events lost")
        )
        self._node = node
        self.now = clock.now
        self._lock = threading.Lock()
        self._seq = 0
        self.epoch: Epoch = (0, 0)

    def say(self, kind: str, **fields: Any) -> None:
        with self._lock:
            seq, self._seq = self._seq, self._seq + 1
        row = {"t": round(self.now(), 3), "e": list(self.epoch), "n": self._node, "q": seq, "k": kind}
        row.update(fields)
        self._lines.write(row)

    def close(self) -> None:
        self._lines.close()
