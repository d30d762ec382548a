"""How runs that belong together are named: a parent, and its points counted from 1."""

from __future__ import annotations


def point_id(parent: str, index: int) -> str:
    """Return the id of the point of this index, from 0, in its parent's matrix."""
    return f"{parent}-{index + 1}"
