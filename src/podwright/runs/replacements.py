"""Nodes of a run that were replaced: which, when, and by which host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from podwright.runs.events import Event, PilotStarted
from podwright.runs.record import iso


@dataclass(frozen=True)
class Replacement:
    """A node that began anew, on another host or on the same; `time` in Unix seconds."""

    node: int
    time: float
    host: str
    before: str

    def as_json(self) -> dict[str, Any]:
        """Return it as `show --json` has it."""
        return {"node": self.node, "at": iso(self.time), "host": self.host, "before": self.before}


def replacements(events: Iterable[Event]) -> list[Replacement]:
    """Return every later start of a node, in the order of time."""
    starts = sorted((event for event in events if isinstance(event, PilotStarted)), key=lambda start: start.time)
    hosts: dict[int, str] = {}
    replaced = []
    for start in starts:
        if start.node in hosts:
            replaced.append(Replacement(start.node, start.time, start.host, hosts[start.node]))
        hosts[start.node] = start.host
    return replaced
