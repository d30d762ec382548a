"""What points of a run failed of: alike failures are one cause, told by the last exception or the signal. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podwright.runs.events import RankFailed
from podwright.runs.record import Record
from podwright.spec.hostlist import natural_key

_EXCEPTION = re.compile(r"(?:[\w.]+\.)?(?P<kind>\w*(?:Error|Exception|Interrupt|Exit|Failure))(?::\s*(?P<text>.*))?")
_VARYING = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*|/[^\s:'\"]+")
"""What differs between failures that are alike: addresses, numbers, paths."""
_FIRST_SENTENCE = re.compile(r"\.\s|;\s|\n")
_KNOWN = ("out of memory",)
_LONGEST = 80
FAILED = ("failed", "lost")


@dataclass(frozen=True)
class FailureGroup:
    """Points that failed of the same thing, on one host where it is one, and the first line that says so."""

    cause: str
    count: int
    points: tuple[str, ...]
    host: str | None
    line: str

    def as_json(self) -> dict[str, Any]:
        """Return it as a parent lists it."""
        return asdict(self)

    @property
    def text(self) -> str:
        """Return `3 out of memory`, with the host where all were on one."""
        return f"{self.count} {self.cause}" + (f" on {self.host}" if self.host else "")


def group_failures(points: Iterable[tuple[Record, Sequence[RankFailed]]]) -> list[FailureGroup]:
    """Return the causes of those points that failed, the most frequent first; then by node, then by point."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for record, events in points:
        if record.state in FAILED:
            failed = events[-1] if events else None
            cause, line = cause_of(record, failed)
            host = (failed.host if failed else None) or ""
            groups.setdefault(cause, []).append((host, record.id, line))
    return sorted((_group(cause, rows) for cause, rows in groups.items()), key=lambda group: -group.count)


def _group(cause: str, rows: Sequence[tuple[str, str, str]]) -> FailureGroup:
    hosts = {host for host, _, _ in rows}
    ordered = sorted(rows, key=lambda row: (row[0], natural_key(row[1])))
    host = hosts.pop() if len(hosts) == 1 else ""
    return FailureGroup(cause, len(rows), tuple(point for _, point, _ in ordered), host or None, ordered[0][2])


def cause_of(record: Record, failed: RankFailed | None) -> tuple[str, str]:
    """Return what a point failed of, in the words that alike failures share, and the line that says so."""
    if failed is None:
        return _alike(record.reason or record.state), record.reason
    for line in reversed(failed.tail):
        match = _EXCEPTION.fullmatch(line.strip())
        if match is not None:
            return _of_exception(match["kind"], match["text"] or ""), line.strip()
    last = next((line.strip() for line in reversed(failed.tail) if line.strip()), "")
    if failed.signal:
        return failed.signal, last or failed.why
    return _alike(failed.why or record.reason), last or failed.why


def _of_exception(kind: str, text: str) -> str:
    for known in _KNOWN:
        if known in text.lower() or known.replace(" ", "") in kind.lower():
            return known
    return _alike(f"{kind}: {_FIRST_SENTENCE.split(text)[0]}" if text else kind)


def _alike(text: str) -> str:
    return _VARYING.sub("#", text).strip()[:_LONGEST]
