"""What a training says: lines for people, for Podwright and for MLPerf's tools, all on stdout, from one rank."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

Value = float | int


class Teller:
    """Prints at once, or nothing at all when another rank speaks."""

    def __init__(self, speaks: bool, every_s: float) -> None:
        self.speaks = speaks
        self.every_s = every_s
        self._told_at = -every_s
        self._losses: list[float] = []

    def line(self, text: str) -> None:
        """A line for people."""
        if self.speaks:
            print(text, flush=True)

    def warn(self, text: str) -> None:
        """A line about what this rank alone has met, on stderr."""
        print(text, file=sys.stderr, flush=True)

    def values(self, values: dict[str, Value]) -> None:
        """Progress and results, as one JSON line."""
        rounded = {name: round(value, 6) if isinstance(value, float) else value for name, value in values.items()}
        self.line(json.dumps({"podwright": rounded}))

    def step(self, values: dict[str, Value], loss: float, parts: Callable[[], dict[str, Value]]) -> None:
        """Progress of a step, at most once in `every_s`; loss and `parts`, where time went, are means since then."""
        self._losses.append(loss)
        now = time.monotonic()
        if now - self._told_at >= self.every_s:
            self.values(values | {"loss": sum(self._losses) / len(self._losses)} | parts())
            self._losses.clear()
            self._told_at = now

    def mllog(self, kind: str, key: str, value: object = None, **metadata: str | int) -> None:
        """A line of MLPerf's log; `kind` is INTERVAL_START, INTERVAL_END or POINT_IN_TIME."""
        caller = sys._getframe(1)
        where = {"file": Path(caller.f_code.co_filename).name, "lineno": caller.f_lineno}
        entry = {
            "namespace": "",
            "time_ms": time.time_ns() // 1_000_000,
            "event_type": kind,
            "key": key,
            "value": value,
            "metadata": where | metadata,
        }
        self.line(f":::MLLOG {json.dumps(entry)}")
