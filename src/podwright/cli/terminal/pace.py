"""How fast a training goes, and how long it will still take, by the counts that it told lately."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from podwright.cli.terminal import figures

COUNTS = (("step", "steps"), ("epoch", "epochs"))
RECENT = 30


class CountTold(NamedTuple):
    """A count as it was told: when by the pilot's clock, and when it was heard of here."""

    t: float
    done: float
    heard: float


class Pace:
    """Takes the counts of the lowest rank that tells any: others tell the same, some a little later."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._totals: dict[str, float] = {}
        self._rank: int | None = None
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget an attempt that is over."""
        self._lately: dict[str, deque[CountTold]] = {name: deque(maxlen=RECENT) for name, _ in COUNTS}
        self._starts_over = False

    def take(self, t: float, rank: int, values: Mapping[str, float]) -> None:
        """Take what a rank told."""
        if self._rank is not None and rank > self._rank:
            return
        self._rank = rank
        for name, total in COUNTS:
            if total in values:
                self._totals[name] = values[total]
            if name in values:
                self._add(name, CountTold(t, values[name], self._clock()))

    def _add(self, name: str, latest: CountTold) -> None:
        lately = self._lately[name]
        if lately and latest.done < lately[-1].done:
            # A bar for each epoch: its steps say nothing of the whole.
            self._starts_over = True
            lately.clear()
        if not lately or latest.done > lately[-1].done:
            lately.append(latest)

    def _per_s(self, name: str) -> float | None:
        lately = self._lately[name]
        if len(lately) < 2 or lately[-1].t <= lately[0].t:
            return None
        return (lately[-1].done - lately[0].done) / (lately[-1].t - lately[0].t)

    def rate(self) -> str:
        """Return `4.2/s`, or `12 s/step` of one that is slow; nothing before it is known."""
        for name, _ in COUNTS:
            per_s = self._per_s(name)
            if per_s:
                return f"{figures.value(per_s)}/s" if per_s >= 1 else f"{figures.duration(1 / per_s)}/{name}"
        return ""

    def left_s(self) -> float | None:
        """Return the seconds until all of it is done; None where nobody can say."""
        for name, _ in COUNTS:
            per_s, total = self._per_s(name), self._totals.get(name)
            is_whole = not (name == "step" and self._starts_over and "epoch" in self._totals)
            if per_s and total and is_whole:
                last = self._lately[name][-1]
                left_s = (total - last.done) / per_s - (self._clock() - last.heard)
                return max(0.0, left_s)
        return None
