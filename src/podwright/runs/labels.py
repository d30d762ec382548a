"""Tags and a note: what users write on their runs, as events of clients, also after the run is sealed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from podwright.runs.events import Event, NoteWritten, TagsChanged

TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}")
MAX_TAGS, MAX_NOTE = 100, 10_000
"""Of one run: how many tags, and how many characters of a note."""


@dataclass(frozen=True)
class RunLabels:
    """What a run is marked with now."""

    tags: tuple[str, ...] = ()
    note: str = ""

    def after(self, event: Event) -> RunLabels:
        """Return what it is marked with after an event; the last word on a tag counts."""
        if isinstance(event, NoteWritten):
            return RunLabels(self.tags, event.text[:MAX_NOTE])
        if not isinstance(event, TagsChanged):
            return self
        tags = (set(self.tags) - set(event.removed)) | set(filter(TAG.fullmatch, event.added))
        return RunLabels(tuple(sorted(tags)[:MAX_TAGS]), self.note)


def labels_of(events: Iterable[Event], known: RunLabels = RunLabels()) -> RunLabels:  # noqa: B008 - it is frozen
    """Return what a run is marked with; `known` is what an older record of it says."""
    for event in events:
        known = known.after(event)
    return known
