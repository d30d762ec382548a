"""Runs that a user has on a target, whichever home started them: what is found there was written by others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podwright.runs.record import Asked, parse_asked
from podwright.runs.store import ID

WAITING, AT_WORK, OVER = "pending", "running", "ended"
"""What a target knows of the state of a run; `ended`: it is over, and nothing there says how."""


@dataclass(frozen=True)
class FoundRun:
    """A run as it lies on its target."""

    asked: Asked
    state: str
    handle: str = ""
    """What the engine calls its job; nothing where it has none (yet)."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What later clients need of it, by its place in the run's folder."""
    path: Path | None = None
    """Where it lies, on a machine that sees that."""


def asked_of(row: Mapping[str, Any], engine: str) -> Asked | None:
    """Return what was asked of a run of this engine; None where that is not what one of our clients writes."""
    try:
        asked = parse_asked(row["asked"])
    except (ValueError, KeyError, TypeError):
        return None
    ids = [asked.id, *([asked.parent] if asked.parent else [])]
    is_whole = asked.id == row.get("id") and all(ID.fullmatch(name) for name in ids)
    return asked if is_whole and asked.engine == engine else None


def newest_first(runs: Iterable[FoundRun]) -> list[FoundRun]:
    """Return runs in the order in which they are shown."""
    return sorted(runs, key=lambda run: (-run.asked.created_at, run.asked.id))
