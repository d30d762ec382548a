"""What machines that may be taken away are worth: the hour of rent by what a run makes of it. Pure.

What an interruption costs is measured: the time that a run lost and needed to be where it was, over its attempts. How
often one comes is the offer's. Of T hours, each interrupted r times at a loss of o hours, T (1 - r o) are left, and the
run uses as much of them as without interruptions.
"""

from __future__ import annotations

from dataclasses import dataclass

from podwright.runs.goodput import Goodput

PER_INTERRUPTION = ("start", "init", "compile", "restore", "lost_work", "hang", "recovery")
"""Classes that an attempt takes again, or that are there only since one was ended."""
_HOUR_MS, _DAY_HOURS = 3_600_000, 24.0


@dataclass(frozen=True)
class InterruptedUse:
    """How a run uses its time between interruptions, and how long each of them takes."""

    run: str
    steady: float
    """Its goodput if nothing ever ended it."""
    lost_h: float
    """Of all its machines, for one interruption."""

    def goodput_at(self, per_day: float) -> float:
        """Return its goodput where so many interruptions come in a day; 0 where it would get nowhere."""
        return self.steady * max(0.0, 1.0 - per_day / _DAY_HOURS * self.lost_h)


def interrupted_use(run: str, goodput: Goodput | None) -> InterruptedUse | None:
    """Return what is known of a run; None of one that did nothing productive, of which nothing follows."""
    if goodput is None or not goodput.running or not goodput.classes.get("productive"):
        return None
    lost = sum(goodput.classes.get(name, 0) for name in PER_INTERRUPTION)
    at_once = goodput.allocated / goodput.running
    attempts = goodput.interruptions + 1
    steady = goodput.classes["productive"] / (goodput.allocated - lost)
    return InterruptedUse(run, steady, lost / attempts / at_once / _HOUR_MS)
