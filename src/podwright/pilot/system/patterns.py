"""Patterns of paths as in .gitignore, the same rule for what travels with a run and for what is kept of it."""

from __future__ import annotations

from fnmatch import filter as filter_names
from typing import Iterable


def fits(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a pattern fits the whole path, a folder it lies in, or any one part of it."""
    parts = path.split("/")
    folders = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    candidates = [*folders, *parts]
    return any(filter_names(candidates, pattern.strip("/")) for pattern in patterns)
