"""The truth about a run and its points at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from podwright.runs import Record


class RunRecords(NamedTuple):
    """The record of a run, and those of its points where it has some."""

    record: Record
    points: list[Record]

    def as_json(self) -> dict[str, Any]:
        """Return the document of a run; a parent has its points in it."""
        document: dict[str, Any] = self.record.as_json()
        if self.points:
            document["points"] = [point.as_json() for point in self.points]
        return document
