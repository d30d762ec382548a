"""What all routes share: the session on a home, who may enter, the audit, and the feed of changes."""

from __future__ import annotations

import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

from podwright import launch
from podwright.console.access.audit import Audit
from podwright.console.access.guard import LOOPBACK, Bucket
from podwright.console.access.people import People
from podwright.files.journal import append
from podwright.files.people import user_name
from podwright.runs.record import iso

FRESH_S = 2.0
WAIT_S = 1.0
"""How old what is shown may be before targets are asked, and how long a page waits for their answer."""
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class DeskClock:
    """How time passes; tests hand in another."""

    monotonic: Callable[[], float] = time.monotonic
    time: Callable[[], float] = time.time


class Desk:
    """One for the life of a console. It asks targets in a thread of its own, once for all who look."""

    def __init__(self, session: launch.Session, host: str = "127.0.0.1", clock: DeskClock | None = None) -> None:
        self.session, self.clock = session, clock or DeskClock()
        self._folder: Path = session.home.path / "console"
        self.people = People(self._folder, user_name() or "owner", self.clock.time)
        self.audit = Audit(self._folder, self.clock.time)
        self.hosts = LOOPBACK | {host.lower()}
        self.requests = Bucket(400, 100, self.clock.monotonic)
        self.mistakes = Bucket(20, 0.2, self.clock.monotonic)
        self._asking = ThreadPoolExecutor(1, "console-look")
        self._look: Future[None] | None = None
        self._looked_at = float("-inf")
        self._lock = Lock()
        self._kept: OrderedDict[object, object] = OrderedDict()

    def close(self) -> None:
        """End the thread; what it is at is finished first."""
        self._asking.shutdown(cancel_futures=True)

    def look(self) -> Future[None]:
        """Ask after all runs that are not over, unless that was done just now."""
        with self._lock:
            is_old = self.clock.monotonic() - self._looked_at >= FRESH_S
            if self._look is None or (self._look.done() and is_old):
                self._looked_at = self.clock.monotonic()
                self._look = self._asking.submit(self._refreshed)
            return self._look

    def _refreshed(self) -> None:
        """Ask; what keeps from it is told once, and what is known is shown all the same."""
        try:
            launch.refresh(self.session)
        except Exception as error:
            self.note_fault(error)

    def note_fault(self, error: Exception) -> Path:
        """Write a fault of ours where its user finds it, and return where."""
        path = self._folder / "faults.log"
        lines = "".join(traceback.format_exception(error))
        with suppress(OSError):  # a full disk is no reason to show nothing
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            append(path, f"{iso(self.clock.time())}\n{lines}\n".encode())
        return path

    def look_soon(self) -> None:
        """Ask as `look` does, and wait a moment for the answer: a target that is away holds up no page."""
        with suppress(Late):
            self.look().result(timeout=WAIT_S)

    def kept(self, key: object, make: Callable[[], Kept], most: int = 8) -> Kept:
        """Return what was made for this key before, or make it; the least used go first."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]  # type: ignore[return-value]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > most:
                self._kept.popitem(last=False)
        return made
