"""One thread that waits for sockets, pipes, signals, ended children and timers."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Deque, Dict, List, Set

from .processes import reap

STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Loop:
    """Callbacks never nest: each runs to its end before the next is looked at."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: Dict[str, List[Any]] = {}
        self._signals: Set[int] = set()
        self._soon: Deque[Callable[[], Any]] = deque()
        self._wake = -1
        self.ended: Dict[int, int] = {}
        """Wait status of children that ended; whoever waits for one takes it out."""

    def catch_signals(self) -> None:
        """Note signals in a handler that only wakes the loop, by a pipe; they are dealt with in the loop."""
        read, write = os.pipe()
        for end in (read, write):
            os.set_blocking(end, False)
        self._wake = write
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in WATCHED:
            signal.signal(number, lambda number, _: self._signals.add(number))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.watch(read, lambda: os.read(read, 4096))

    def watch(self, source: Any, callback: Callable[[], Any]) -> None:
        """Call back whenever `source` can be read.

        A source that was closed unforgotten may have left its number behind, so that is forgotten first.
        """
        self.forget(source)
        self._selector.register(source, selectors.EVENT_READ, callback)

    def forget(self, source: Any) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def now(self) -> float:
        """Return the time that timers go by."""
        return time.monotonic()

    def call_soon(self, callback: Callable[[], Any]) -> None:
        """Run `callback` in the loop's thread; safe to call from any thread."""
        self._soon.append(callback)
        with suppress(OSError):  # the pipe is full: the loop is awake anyway
            os.write(self._wake, b"\0")

    def every(self, name: str, period_s: float, callback: Callable[[], Any]) -> None:
        """Call again and again from one period on; the same name replaces the timer."""
        self._timers[name] = [time.monotonic() + period_s, period_s, callback]

    def stop(self, name: str) -> None:
        self._timers.pop(name, None)

    def reap(self) -> None:
        """Take note of children that ended; safe to call from a callback, where a turn is not."""
        self.ended.update(reap())

    def turn(self, limit_s: float) -> Set[int]:
        """Wait for what comes next, at most `limit_s`; return the signals that arrived."""
        wait_s = min([limit_s] + [row[0] - time.monotonic() for row in self._timers.values()])
        for key, _ in self._selector.select(max(wait_s, 0.0)):
            # A callback before it may have closed this one, and another file may have its number by now.
            if self._selector.get_map().get(key.fd) is key:
                key.data()
        while self._soon:
            self._soon.popleft()()
        self.reap()
        now = time.monotonic()
        for name, row in list(self._timers.items()):
            if row[0] <= now and self._timers.get(name) is row:
                row[0] = now + row[1]
                row[2]()
        return self.signals()

    def signals(self) -> Set[int]:
        """Return those that arrived since the last look; unlike a turn it reaps no child that another waits for."""
        signals, self._signals = self._signals, set()
        return signals
