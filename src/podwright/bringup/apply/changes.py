"""Which drains are ours: every rolling change has an id, in the reason that a node shows and in the pod's journal."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podwright.files.journal import JournalFile
from podwright.files.whole import make_private

REASON = "podwright: rolling change"


@dataclass(frozen=True)
class ChangeId:
    """One rolling change, and the earlier ones of this home: one that was killed has left nodes drained."""

    own: str
    earlier: frozenset[str] = frozenset()

    @property
    def reason(self) -> str:
        """Return what a node shows that this change has drained."""
        return f"{REASON} {self.own}"

    def is_ours(self, reason: str) -> bool:
        """Return whether a node was drained by this change or an earlier one of ours, and by nobody else."""
        words, _, name = reason.strip().rpartition(" ")
        return words == REASON and self.knows(name)

    def knows(self, name: str) -> bool:
        """Return whether this is the id of a change of ours."""
        return name == self.own or name in self.earlier


def begin(journal: Path, now_s: float, make: Callable[[], str] = lambda: secrets.token_hex(4)) -> ChangeId:
    """Note a new change in the journal before any node is drained, and return it with those before it."""
    make_private(journal.parent)
    rows = JournalFile(journal)
    earlier = frozenset(str(row["id"]) for row in rows.rows() if row.get("k") == "change")
    change = ChangeId(make(), earlier)
    rows.append({"t": now_s, "k": "change", "id": change.own})
    return change
