"""The counters of a run's attempts, and the epochs they run under."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from ..protocol import Epoch
from .lease import Leases


class Attempts:
    """How often a run was tried, under which epochs, and since when.

    The counters outlive a leader: the nodes and the lease carry them to the leader that replaces a lost one.
    """

    def __init__(self, restart: int) -> None:
        self._restart = restart
        self._seen: Epoch = (-1, 0)
        self.epoch: Optional[Epoch] = None
        """Of the attempt that this leader began last."""
        self.planned: Optional[Epoch] = None
        """Of the attempt that follows the one being stopped; None where none follows."""
        self.number = 0
        self.retries_spent = 0
        self.began: Optional[float] = None
        self.slow_at: Optional[float] = None
        """When a node was replaced last because a rank of it was slow."""

    def learn(self, facts: Mapping[str, Any]) -> None:
        """Take up the counters where another process saw them last."""
        epoch = facts.get("epoch")
        if epoch:
            self._seen = max(self._seen, (int(epoch[0]), int(epoch[1])))
        self.retries_spent = max(self.retries_spent, int(facts.get("spent", 0)))
        self.number = max(self.number, int(facts.get("attempt", 0)))
        began = facts.get("began")
        if began and (self.began is None or began < self.began):
            self.began = float(began)
        slow_at = facts.get("slow_at")
        if slow_at and (self.slow_at is None or slow_at > self.slow_at):
            self.slow_at = float(slow_at)

    def counters(self) -> Dict[str, Any]:
        """Return what `learn` takes, as the nodes are sent it."""
        own = {"spent": self.retries_spent, "began": self.began, "attempt": self.number}
        return {**own, "slow_at": self.slow_at}

    def is_over(self, limit_s: Optional[float], now: float) -> bool:
        """Return whether the run has taken longer than it may, since its first attempt."""
        return limit_s is not None and self.began is not None and now - self.began > limit_s

    def claim(self, leases: Leases, now: float) -> bool:
        """Begin the next attempt under an epoch of its own; return False when another process was faster."""
        newest = leases.newest()
        if newest:
            self.learn({"epoch": newest.epoch, **newest.facts})
        epoch = self._next_epoch()
        facts = {**self.counters(), "attempt": self.number + 1, "began": self.began or now}
        if not leases.claim(epoch, facts):
            return False
        self.epoch = self._seen = epoch
        self.planned = None
        self.number += 1
        self.began = self.began or now
        return True

    def _next_epoch(self) -> Epoch:
        """Return the epoch that was planned, or else one that is greater than any that was seen."""
        if self.planned and self.planned > self._seen:
            return self.planned
        first = (self._restart, 0)
        return (self._seen[0] + 1, 0) if self._seen >= first else first

    def plan_retry(self) -> None:
        """Let an attempt follow the one that failed; it spends one of the user's retries."""
        assert self.epoch is not None
        self.retries_spent += 1
        self.planned = (self.epoch[0], self.epoch[1] + 1)

    def plan_replacement(self) -> None:
        """Let an attempt follow the one that lost a node; the engine replaces nodes, so this spends no retry."""
        assert self.epoch is not None
        self.planned = (self.epoch[0] + 1, 0)
