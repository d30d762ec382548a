"""Live: the stream of changes, and the same by asking."""

from __future__ import annotations

from dataclasses import dataclass

from podwright.console.live.feed import changes_since, events
from podwright.console.web.answers import Answer, JsonAnswer, Stream
from podwright.console.web.route import Visit


@dataclass(frozen=True)
class ChangesRequest:
    """A place in the feed; none is the present."""

    since: str = ""


def stream(visit: Visit, asked: ChangesRequest) -> Answer:
    """Return the stream of changes; a browser that lost it says the id of the last event it has."""
    return Stream(events(visit.desk, visit.headers.get("last-event-id") or asked.since))


def changes(visit: Visit, asked: ChangesRequest) -> Answer:
    """Return what changed behind a place: for proxies that swallow streams."""
    visit.desk.look_soon()
    return JsonAnswer(changes_since(visit.desk, asked.since).as_json())
