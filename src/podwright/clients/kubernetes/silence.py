"""A server that does not answer: since when, and how much longer a command waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable

BUDGET_S = 8.0
"""One for each command, however many questions it has: a server that restarts is back within seconds."""
MIN_S = 1.0
"""That a question is given in any case, and between two questions to a server that was waited for long enough."""


class Silence:
    """What all questions to one server have found; a single answer ends it."""

    def __init__(self, budget_s: float = BUDGET_S, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget_s = budget_s
        self._clock = clock
        self._since: float | None = None
        self._asked_at = -MIN_S

    def begin(self, since: float) -> None:
        """Note that what was asked at this moment found no answer."""
        if self._since is None:
            self._since = since
        self._asked_at = self._clock()

    def end(self) -> None:
        """Note an answer."""
        self._since = None

    @property
    def is_on(self) -> bool:
        """Return whether the last question found no answer."""
        return self._since is not None

    def left_s(self) -> float:
        """Return how long the server is still waited for."""
        if self._since is None:
            return self.budget_s
        return self._since + self.budget_s - self._clock()

    def is_spent(self) -> bool:
        """Return whether it was waited for long enough."""
        return self.left_s() <= 0

    def rests(self) -> bool:
        """Return whether it was waited for long enough, and asked in vain a moment ago: nobody need ask again."""
        return self.is_spent() and self._clock() - self._asked_at < MIN_S
