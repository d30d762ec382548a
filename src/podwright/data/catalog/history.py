"""The generations of a dataset that stay when others follow: the last ones that a scan made, as a whole each.

What was added to one (tags, checksums, class counts) is the same scan's generation again and takes its place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.files.whole import write_whole
from podwright.runs.record import iso

FACTS = "facts.json"


@dataclass(frozen=True, slots=True)
class Keep:
    """How much of a dataset's history stays beside the generation that readers see."""

    generations: int = 3
    """With that one."""
    size_bytes: int = 20 * 10**9
    """Of all together; the one that readers see stays whatever it takes."""


@dataclass(frozen=True, slots=True)
class PastGeneration:
    """A generation that is there: when it was published, and what its scan found."""

    generation: int
    scan: int
    at: float
    files: int | None
    changed: int | None
    size_bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return the row of `data history`."""
        counts = {"files": self.files, "changed": self.changed, "bytes": self.size_bytes}
        return {"generation": self.generation, "at": iso(self.at), **counts}


def write_facts(draft: Path, before: Path, facts: Mapping[str, Any] | None) -> None:
    """Write down in a generation what its scan found; what adds to another has the facts of that."""
    document = _read(before) if facts is None else {**facts, "scan": time.time_ns()}
    write_whole(draft / FACTS, json.dumps({**document, "at": time.time()}).encode())


def read_generation(folder: Path, number: int) -> PastGeneration:
    """Return a generation that is there; of one of an earlier version little is known."""
    facts = _read(folder)
    size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    at = facts.get("at", folder.stat().st_mtime)
    return PastGeneration(number, facts.get("scan", number), at, facts.get("files"), facts.get("changed"), size_bytes)


def past_to_keep(history: Sequence[PastGeneration], keep: Keep) -> list[PastGeneration]:
    """Return the generations that stay: of each scan the newest, the newest scans first."""
    newest = {past.scan: past for past in reversed(history)}
    kept: list[PastGeneration] = []
    size_bytes = 0
    for past in sorted(newest.values(), key=lambda past: -past.generation)[: max(keep.generations, 1)]:
        size_bytes += past.size_bytes
        if kept and size_bytes > keep.size_bytes:
            break
        kept.append(past)
    return kept


def _read(folder: Path) -> dict[str, Any]:
    try:
        document = json.loads((folder / FACTS).read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
