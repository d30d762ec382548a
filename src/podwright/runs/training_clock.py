"""The clock of time to train: where it starts, and when it was stopped; and which times are believed at all."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from podwright.runs.events import AttemptStarted, Event, GoalReached, ResultTold

AHEAD_S = 600.0
RUN_START = "run_start"
"""MLLOG's key for the start of a training."""


@dataclass(frozen=True)
class TrainingClock:
    """The moments that make the time to train, each the earliest of its kind.

    Events come in the order they are read, which is not that of time: several nodes write, and a leader that comes back
    tells the goal again.
    """

    run_start: float | None = None
    first_go: float | None = None
    first_hit: GoalReached | None = None

    def after(self, event: Event) -> TrainingClock:
        """Return the clock as it is when this event is known too."""
        match event:
            case AttemptStarted():
                return replace(self, first_go=_earlier(self.first_go, event.time))
            case ResultTold() if event.mllog == RUN_START:
                return replace(self, run_start=_earlier(self.run_start, event.time))
            case GoalReached() if self.first_hit is None or event.time < self.first_hit.time:
                return replace(self, first_hit=event)
        return self

    @property
    def began(self) -> float | None:
        """Return when the clock started: the program's own word, else the first start of the ranks."""
        if self.run_start is not None:
            return self.run_start
        return self.first_go

    @property
    def goal_value(self) -> float | None:
        """Return what the goal's metric was when the goal was met."""
        return None if self.first_hit is None else self.first_hit.value

    @property
    def took_s(self) -> float | None:
        """Return the time to train; None while the goal is not met."""
        if self.first_hit is None or self.began is None:
            return None
        return elapsed_s(self.began, self.first_hit.time)


def elapsed_s(began: float, ended: float) -> float:
    """Return how long something took: clocks of two machines may differ, but nothing takes less than no time."""
    return round(max(ended - began, 0.0), 3)


def is_believed(moment: float) -> bool:
    """Return whether something can have happened then, by this machine's clock: others may be ahead, but not far."""
    return moment <= time.time() + AHEAD_S


def _earlier(known: float | None, moment: float) -> float:
    if known is None:
        return moment
    return min(known, moment)
