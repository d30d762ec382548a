"""How runs that belong together are named: a parent, and its points counted from 1."""

from __future__ import annotations


def point_id(parent: str, index: int) -> str:
    """Return the id of the point that has this place, from 0, in its parent's matrix."""
    return f"{parent}-{index + 1}"


def point_ids(parent: str, count: int) -> list[str]:
    """Return the ids of all points of a parent."""
    return [point_id(parent, index) for index in range(count)]
