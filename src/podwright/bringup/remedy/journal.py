"""The journal of remedies: every change of a node with its reason, from which the unit goes on after it was ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from podwright.bringup.remedy.policy import CURES, Event, RemedyAlert, RemedyNode, State
from podwright.files.journal import JournalFile

NAME = "journal.jsonl"


@dataclass(frozen=True)
class RemedyJournal:
    """One pod's journal; `is_dry`: what stands in it was not done."""

    file: JournalFile
    is_dry: bool = False

    @classmethod
    def of(cls, folder: Path, is_dry: bool = False) -> RemedyJournal:
        """Return the journal of a folder; what was only said stands apart from what was done."""
        return cls(JournalFile(folder / f"dry-{NAME}" if is_dry else folder / NAME), is_dry)

    def note(self, now: float, event: Event, before: RemedyNode, after: RemedyNode, text: str = "") -> None:
        """Note a change before anything is done about it; it is on the disk when this returns."""
        row = {"t": now, "k": "node", "host": after.host, "event": event, "from": before.state, "to": after.state}
        known = asdict(after) | {"excused": sorted(after.excused)}
        self.file.append(row | {"text": text, "dry": self.is_dry, "node": known})

    def act(self, now: float, node: RemedyNode, act: str, outcome: str, text: str = "") -> None:
        """Note an act: that it begins, or what came of it."""
        row = {"t": now, "k": "act", "host": node.host, "act": act, "outcome": outcome, "cure": node.cure}
        self.file.append(row | {"why": node.why, "text": text, "dry": self.is_dry})

    def nodes(self) -> dict[str, RemedyNode]:
        """Return every node that was ever noted, as it was last."""
        return nodes_of(self.file.rows())


def nodes_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, RemedyNode]:
    """Return the nodes of a journal's rows; the last row of a node has all that is known of it."""
    found: dict[str, RemedyNode] = {}
    for row in rows:
        if row.get("k") == "node" and isinstance(row.get("node"), dict):
            node = _node(row["node"])
            found[node.host] = node
    return found


def _node(said: Mapping[str, Any]) -> RemedyNode:
    alerts = tuple(RemedyAlert(each["key"], each["remedy"], each["cure"], each["text"]) for each in said["alerts"])
    return RemedyNode(
        host=str(said["host"]),
        state=cast(State, said["state"]),
        alerts=alerts,
        excused=frozenset(said["excused"]),
        cure=said["cure"] if said["cure"] in CURES else CURES[0],
        why=str(said["why"]),
        tried=tuple(said["tried"]),
        spent=tuple(map(float, said["spent"])),
        since=float(said["since"]),
    )
