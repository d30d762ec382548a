"""When a node gives its place to a spare because a rank of it is slower than all others. Pure."""

from __future__ import annotations

from typing import Dict, List, Optional, Set, Tuple

from ..protocol import SLOW_IN_A_ROW, SlowRank, slow_by_work
from .member import Member, Members

REPLACE_EVERY_S = 3600.0
"""A replacement costs an attempt: a program whose ranks take turns at being slow must not live by them."""


class SlowRanks:
    """What the ranks of an attempt tell of their own work, and which of them is too slow."""

    def __init__(self, least: Optional[float]) -> None:
        self._least = least
        self._told: List[Dict[str, float]] = []
        self._said: Set[Tuple[int, str]] = set()

    def begin_attempt(self) -> None:
        """Forget what the attempt before told."""
        self._told, self._said = [], set()

    def take(self, works: Dict[str, float]) -> None:
        """Take what a rank told of the own work of all."""
        self._told = [*self._told, works][-SLOW_IN_A_ROW:]

    def find(self) -> Optional[SlowRank]:
        """Return the rank that is slower than the others by what the run allows."""
        return None if self._least is None else slow_by_work(self._told, self._least)

    def is_news(self, rank: int, stays: str) -> bool:
        """Return whether that was not said yet in this attempt, and have it said."""
        is_news = (rank, stays) not in self._said
        self._said.add((rank, stays))
        return is_news


def why_it_stays(slow: Member, members: Members, since_s: Optional[float]) -> str:
    """Return why a node with a slow rank keeps its place, in words; nothing where a spare takes it.

    `since_s` is how long ago a node was replaced for this reason, if one was.
    """
    if slow.node == 0:
        return "its node leads the run"
    if not any(_can_take_over(member) for member in members.here):
        return "no spare waits"
    if since_s is not None and since_s < REPLACE_EVERY_S:
        return "a node was replaced for this within the last hour"
    return ""


def _can_take_over(member: Member) -> bool:
    return member.place is None and member.idle and not member.broken and not member.slow
