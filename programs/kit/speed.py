"""How fast a training goes now: the one rule for what programs tell, and so for terminal and report.

A speed is that of the last 20 steps or the last 30 seconds of steps, whichever is longer. Since the beginning of an
epoch it would be a mean with compiling, a profiler and the first batches in it: a third of what the step does.
"""

from __future__ import annotations

from collections import deque

STEPS, SECONDS = 20, 30.0


class Recent:
    """The seconds of the last steps; what lies between two epochs is no step."""

    def __init__(self) -> None:
        self._taken: deque[float] = deque()
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """A step took so long."""
        self._taken.append(seconds)
        self._sum += seconds
        while len(self._taken) > STEPS and self._sum - self._taken[0] >= SECONDS:
            self._sum -= self._taken.popleft()

    def steps_per_s(self) -> float:
        """Steps a second lately; 0 before the first one."""
        return len(self._taken) / sum(self._taken) if self._taken else 0.0
