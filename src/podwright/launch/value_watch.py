"""Watching many runs for the values that their functions leave, at a cost that does not follow their number."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from podwright.launch.call_values import bring_values, early_values
from podwright.launch.follow import reconcile
from podwright.launch.run import Run, value_here
from podwright.launch.session import Session
from podwright.runs import Record

LONGEST_PAUSE_S = 1.0
LONGEST_QUIET_S, LONGEST_STREAM_S = 10.0, 30.0
"""Without a value, and with values that come, until all runs of a map are looked at."""
LOOK_PAUSES = 50
"""Times as long as it took does a look let pass until the next one."""


@dataclass(frozen=True)
class ValueCame:
    """A run whose function has returned or failed; its record where it is over."""

    run: Run
    record: Record | None
    is_here: bool

    def value(self, trust: bool = False) -> Any:
        """Return what the function returned; CallFailed where it failed."""
        if self.is_here:
            return value_here(self.run, self.record, trust=trust)
        # Another client is at it just now, or its target is away: that is waited for, but not for ever.
        return self.run.value(trust=trust)


class ValueWatch:
    """Runs that are waited for.

    A value is taken when it is there, even while its run closes its record. That a run failed is seen by a look at all
    of them, which costs their target more.
    """

    def __init__(self, session: Session, pause_s: float = 0.2) -> None:
        self._session, self._pause_s = session, pause_s
        self.waiting: dict[str, Run] = {}
        self._turn, self._took_s = LookTurn(pause_s), 0.0

    def add(self, run: Run) -> None:
        """Wait for this run, too."""
        self.waiting[run.id] = run

    def look(self) -> Iterator[ValueCame]:
        """Yield the runs that are done since the last look."""
        began = time.monotonic()
        over: dict[str, Record] = {}
        if self.waiting and self._turn.is_due(began):
            over = {record.id: record for record in reconcile(self._session, self.waiting) if record.is_final}
            self._turn.looked(began, time.monotonic())
        here = bring_values(self._session, [self.waiting[run_id].folder for run_id in over])
        others = [run.folder for run_id, run in self.waiting.items() if run_id not in over]
        early, erred = early_values(self._session, others)
        self._turn.erred(erred)
        self._took_s = time.monotonic() - began
        for run_id in [*over, *early]:
            is_here = run_id in early or run_id in here
            yield ValueCame(self.waiting.pop(run_id), over.get(run_id), is_here)
        if over or early:
            self._turn.came(time.monotonic())

    @property
    def pause_s(self) -> float:
        """Return how long to wait until the next look."""
        return max(self._pause_s, min(self._took_s, LONGEST_PAUSE_S))

    def rest(self) -> None:
        """Wait until the next look."""
        if self.waiting:
            time.sleep(self.pause_s)


class LookTurn:
    """When it is time to look at all points: when no value came for a while, and now and then although some do."""

    def __init__(self, least_s: float) -> None:
        self._least_s = self._quiet_s = least_s
        self._looked_at = self._came_at = -LONGEST_STREAM_S
        self._erred: set[str] = set()

    def is_due(self, now: float) -> bool:
        """Return whether a look is due."""
        if now - self._looked_at >= LONGEST_STREAM_S:
            return True
        return now - max(self._looked_at, self._came_at) >= self._quiet_s

    def looked(self, began: float, ended: float) -> None:
        """Note a look: one that took long is followed by a long pause."""
        self._looked_at = ended
        self._quiet_s = min(max(self._least_s, LOOK_PAUSES * (ended - began)), LONGEST_QUIET_S)

    def erred(self, runs: set[str]) -> None:
        """Note who has erred: whether that is the end of a run is seen by a look."""
        if runs - self._erred:
            self._looked_at = -LONGEST_STREAM_S
        self._erred |= runs

    def came(self, now: float) -> None:
        """Note that values came: those who wrote them are well."""
        self._came_at = now
