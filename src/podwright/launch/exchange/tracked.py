"""A run as trackers of experiments take it: what was asked, what it is marked with, and its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podwright.launch.exchange.told_points import Point, points_of
from podwright.runs import Asked, Record, RunFolder

TOLD_OF = ("target", "nodes", "world_size", "user", "team", "attempts", "time_to_train_s", "exit_code")


@dataclass(frozen=True)
class Tracked:
    """One run, as it is now."""

    record: Record
    asked: Asked
    points: Sequence[Point]

    @classmethod
    def of(cls, record: Record, folder: RunFolder) -> Tracked:
        """Read what a run has told."""
        return cls(record, folder.asked, points_of(folder.series(), record.created_at))

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self.record.id

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Return what it was given: what was varied, and the command."""
        command = self.asked.workload.get("command")
        words = " ".join(map(str, command)) if isinstance(command, list) else str(command or "")
        return {"command": words, **(self.record.matrix or {})}

    @property
    def facts(self) -> Mapping[str, str]:
        """Return what is known of it as short texts."""
        known = {name: getattr(self.record, name) for name in TOLD_OF}
        known |= {"commit": (self.asked.code or {}).get("commit"), "note": self.record.note}
        known["tags"] = ",".join(self.record.tags)
        return {name: str(value) for name, value in known.items() if value not in (None, "")}
