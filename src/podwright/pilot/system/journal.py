"""Append-only JSON lines and a clock that never steps back."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any, Callable, Deque, Dict, Optional

from ..protocol import KEY_EPOCH, KEY_KIND, KEY_NODE, KEY_SEQUENCE, KEY_TIME, Epoch, json_line
from .plain_files import open_to_add

MAX_WAITING_EVENTS, MAX_WAITING_SAMPLES = 20000, 3600
"""Lines that wait in memory while the disk is full."""
CLOSE_S = 60.0
"""How long the end of a pilot waits for room on a full disk."""
LAST_EVENTS = 50
"""Events that are written into the room that was kept, where no other was found."""


class Clock:
    """Unix seconds, anchored once: a wall clock that is set back during a run must not disorder its record."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset_s


class JsonLines:
    """A file of JSON lines; each line is one write, so a kill leaves at most one torn line.

    A full disk must not end a run nor lose its story: lines that cannot be written wait in memory, the oldest are given
    up beyond `max_waiting`, and what was given up is said.
    """

    def __init__(self, path: str, max_waiting: int, on_loss: Optional[Callable[[int], None]] = None) -> None:
        self._file = open_to_add(path)
        self._lock = threading.Lock()
        self._on_loss = on_loss
        self._torn = os.fstat(self._file).st_size > 0
        self._waiting: Deque[bytes] = deque()
        self._max_waiting = max_waiting
        self._lost = 0

    def write(self, row: Dict[str, Any]) -> None:
        data = json_line(row)
        with self._lock:
            self._waiting.append(data)
            if len(self._waiting) > self._max_waiting:
                self._waiting.popleft()
                self._lost += 1
            lost = 0
            if self._flush():
                lost, self._lost = self._lost, 0
        # Outside the lock: the loss is reported by a line of this very file.
        if lost and self._on_loss:
            self._on_loss(lost)

    def _flush(self) -> bool:
        """Write what waits; return whether all of it went. A line that went in half is ended and written again."""
        while self._waiting:
            data = b"\n" + self._waiting[0] if self._torn else self._waiting[0]
            try:
                self._torn = os.write(self._file, data) != len(data)
            except OSError:
                self._torn = True
            if self._torn:
                return False
            self._waiting.popleft()
        return True

    def close(self, patience_s: float = 0.0, make_room: Optional[Callable[[], None]] = None) -> bool:
        """Close the file, waiting for a full disk to get room; return whether all lines are on it.

        Where it gets none the last lines have the room that is made for them.
        """
        deadline = time.monotonic() + patience_s
        while not self._flush() and time.monotonic() < deadline:
            time.sleep(0.25)
        if self._waiting and make_room:
            make_room()
            self._lost += max(len(self._waiting) - LAST_EVENTS, 0)
            self._waiting = deque(self._waiting, LAST_EVENTS)
            self._flush()
        os.close(self._file)
        return not self._waiting


class Journal:
    """The events of one pilot process: every row carries time, epoch, node and sequence."""

    def __init__(self, path: str, node: int, clock: Clock) -> None:
        self._lines = JsonLines(path, MAX_WAITING_EVENTS, self._say_loss)
        self._node = node
        self.now = clock.now
        self._lock = threading.Lock()
        self._seq = 0
        self.epoch: Epoch = (0, 0)

    def say(self, kind: str, **fields: Any) -> None:
        """Write an event; safe to call from any thread."""
        with self._lock:
            seq, self._seq = self._seq, self._seq + 1
        at = {KEY_TIME: round(self.now(), 3), KEY_EPOCH: list(self.epoch), KEY_NODE: self._node}
        self._lines.write({**at, KEY_SEQUENCE: seq, KEY_KIND: kind, **fields})

    def _say_loss(self, lost: int) -> None:
        self.say("sensor", name="journal", error=f"{lost} events lost")

    def close(self, make_room: Optional[Callable[[], None]] = None) -> bool:
        """Close the journal with patience: a run's end must not be lost because the disk is full just then."""
        return self._lines.close(CLOSE_S, make_room)
