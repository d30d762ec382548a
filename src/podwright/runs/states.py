"""The states of a run and what leads from one to another: a table, not branches."""

from __future__ import annotations

STATES = ("pending", "starting", "running", "succeeded", "failed", "cancelled", "lost")
FINAL = frozenset({"succeeded", "failed", "cancelled", "lost"})
SETTLED = FINAL - {"lost"}
"""States that no later news can change. A lost run may still turn up."""

_OUTCOMES = frozenset({"failed", "cancelled", "lost"})
ALLOWED: dict[str, frozenset[str]] = {
    "pending": frozenset({"starting"}) | _OUTCOMES,
    "starting": frozenset({"pending", "running", "succeeded"}) | _OUTCOMES,
    "running": frozenset({"pending", "succeeded"}) | _OUTCOMES,
    "lost": frozenset({"pending", "starting", "running", "succeeded", "failed", "cancelled"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}

BY_EVENT = {"go": "starting", "ready": "running", "retry": "pending", "given_back": "pending"}
"""What an event of the newest attempt says of the run; a retry goes back to pending with a new attempt."""

BY_END = {"succeeded": "succeeded", "failed": "failed", "terminated": "cancelled"}
"""A pilot that was stopped cannot know by whom; unless the engine starts the run again, it was cancelled."""


def move(state: str, to: str) -> str:
    """The state after news of `to`: news that the table does not allow changes nothing."""
    return to if to in ALLOWED[state] else state


def summary(states: list[str]) -> str:
    """The state of a parent from those of its points."""
    if not states or all(state == "pending" for state in states):
        return "pending"
    if any(state not in FINAL for state in states):
        return "running" if any(state != "pending" for state in states) else "pending"
    return next((state for state in ("lost", "failed", "cancelled") if state in states), "succeeded")
