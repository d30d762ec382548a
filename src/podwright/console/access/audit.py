"""The audit: who did what, from where, and what came of it, a JSON line an act."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.files.journal import JournalFile
from podwright.runs.record import iso

MAX_SHOWN = 500


@dataclass(frozen=True)
class Act:
    """Something that was asked for, and what came of it."""

    who: str
    address: str
    what: str
    subject: Mapping[str, Any]
    outcome: str


class Audit:
    """Appends only. Constructing it touches nothing."""

    def __init__(self, folder: Path, now: Callable[[], float]) -> None:
        self._journal, self._now = JournalFile(folder / "audit.jsonl"), now

    def note(self, act: Act) -> None:
        """Write down an act, and wait until it is on the disk."""
        self._journal.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._journal.append({"t": iso(self._now()), **vars(act), "subject": dict(act.subject)})

    def rows(self) -> list[Mapping[str, Any]]:
        """Return the latest acts, the newest first."""
        return self._journal.rows()[: -MAX_SHOWN - 1 : -1]
