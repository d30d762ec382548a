"""What is told of a host: what differs from its plan, and what somebody made beside it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Drift:
    """One thing that is not as it should be."""

    what: str
    expected: str
    found: str
    user: str = ""
    """Who has something in the way, below a folder of his own: `up` leaves it alone, and so does a roll."""
    by_up: bool = True
    """Whether `up` mends it; what it does not is no reason to drain a node."""

    @property
    def words(self) -> str:
        """Return it as a line."""
        how = "left alone" if self.user else f"not {self.expected}"
        return f"{self.what}: {self.found}, {how}"

    @property
    def is_mended(self) -> bool:
        """Return whether `up` puts it right."""
        return self.by_up and not self.user

    def as_json(self) -> dict[str, str]:
        """Return it as `pod status --json` has it."""
        document = {"what": self.what, "expected": self.expected, "found": self.found}
        return {**document, "user": self.user} if self.user else document


@dataclass(frozen=True)
class Foreign:
    """What is on a host and in no plan: a user, a key, a unit. It stays, and nothing is wrong with the host."""

    kind: str
    name: str

    @property
    def words(self) -> str:
        """Return it as a line, and as `pod status --json` has it."""
        return f"{self.kind} {self.name}"


Finding = Drift | Foreign
