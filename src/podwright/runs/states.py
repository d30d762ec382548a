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

BY_EVENT = {"go": "starting", "ready": "running", "retry": "pending", "alone": "pending", "given_back": "pending"}
"""What an event of the newest attempt says of the run; a retry goes back to pending with a new attempt."""

BY_END = {"succeeded": "succeeded", "failed": "failed", "terminated": "cancelled"}
"""A pilot that was stopped cannot know by whom; unless the engine starts the run again, it was cancelled."""


def move(state: str, to: str) -> str:
    """Return the state after news of `to`: news that the table does not allow changes nothing."""
    if to not in ALLOWED[state]:
        return state
    return to


def summary(states: list[str]) -> str:
    """Return the state of a parent from those of its points."""
    if all(state == "pending" for state in states):
        return "pending"
    if any(state not in FINAL for state in states):
        return "running"
    return next((state for state in ("lost", "failed", "cancelled") if state in states), "succeeded")
