"""The feed: what changed in the index, for every browser that looks, and nothing asked while nobody does.

An event's id is the number of the index's change, so that a connection that was lost goes on where it ended.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from anyio import sleep, to_thread

from podwright.console.desk import Desk

POLL_S = 1.0
BEAT_S = 15.0
MAX_IDS = 200
"""Of runs that changed at once only so many are named: the page is loaded again for more."""


@dataclass(frozen=True)
class FeedChanges:
    """What changed behind a place; `is_reset` where the place is unknown and all may have."""

    id: str
    runs: tuple[str, ...] = ()
    is_reset: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return it as an API has it."""
        return {"id": self.id, "runs": list(self.runs), "reset": self.is_reset}

    def as_event(self) -> bytes:
        """Return it as a server-sent event."""
        kind = "reset" if self.is_reset else "change"
        return f"id: {self.id}\nevent: {kind}\ndata: {json.dumps(self.as_json())}\n\n".encode()


def changes_since(desk: Desk, place: str) -> FeedChanges:
    """Return what changed behind a place, which is `NAME-NUMBER`; none named is the present."""
    index = desk.session.home.index
    last = index.change()
    here = f"{last.name}-{last.number}"
    name, _, text = place.rpartition("-")
    if not place:
        return FeedChanges(here)
    if name != last.name or not text.isdecimal() or not text.isascii() or int(text[:18]) > last.number:
        return FeedChanges(here, is_reset=True)
    runs = index.changed_since(int(text))
    if len(runs) > MAX_IDS:
        return FeedChanges(here, is_reset=True)
    return FeedChanges(here, tuple(runs))


async def events(desk: Desk, place: str) -> AsyncIterator[bytes]:
    """Yield events from a place on, with a beat where nothing happens: a proxy ends what is silent."""
    yield b"retry: 3000\n\n"
    silent_s = 0.0
    while True:
        desk.look()
        changes = await to_thread.run_sync(changes_since, desk, place)
        if changes.id != place:
            yield changes.as_event()
            place, silent_s = changes.id, 0.0
        elif silent_s >= BEAT_S:
            yield b": beat\n\n"
            silent_s = 0.0
        await sleep(POLL_S)
        silent_s += POLL_S
