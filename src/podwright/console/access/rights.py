"""Rights, the roles that hold them, and whoever has one of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Right = Literal["anyone", "look", "steer", "manage"]
"""What a route asks for: nothing, to see, to act on runs, to hand out tokens and read the audit."""
RIGHTS: tuple[Right, ...] = ("look", "steer", "manage")
ROLES: dict[str, frozenset[str]] = {
    "viewer": frozenset(RIGHTS[:1]),
    "user": frozenset(RIGHTS[:2]),
    "operator": frozenset(RIGHTS),
}


@dataclass(frozen=True)
class Identity:
    """Who asks, what they may, and how they showed it."""

    name: str
    rights: frozenset[str]
    way: Literal["session", "token"]
    csrf: str = ""
    """Of a session: what its forms must bring along."""

    def may(self, right: Right) -> bool:
        """Return whether a route that asks for this right is open."""
        return right == "anyone" or right in self.rights
