"""Which regular expressions are safe to search every line of a program with.

Python's search tries alternatives one after the other. Two repetitions without a bound take a time that grows with the
square of a line's length, which is bounded; a third, or one inside another, can take for ever.
"""

from __future__ import annotations

import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator
from typing import Any

MAX_UNBOUNDED = 2
MAX_TIMES = 64
"""Repetitions up to a bound like this one count as bounded."""


def backtracks(pattern: str) -> bool:
    """Return whether a search for a pattern may take long on a line that somebody made for it."""
    repeats = list(_repeats(parser.parse(pattern), inside=False))
    return len(repeats) > MAX_UNBOUNDED or any(repeats)


def _repeats(parts: Any, inside: bool) -> Iterator[bool]:
    """Yield for each repetition without a bound whether it lies inside another repetition, or repeats alternatives."""
    for kind, value in parts:
        name = str(kind)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, repeated = value
            unbounded = most is parser.MAXREPEAT or int(most) > MAX_TIMES
            if unbounded:
                yield inside or _chooses(repeated)
            yield from _repeats(repeated, inside or unbounded)
        elif name == "SUBPATTERN":
            yield from _repeats(value[-1], inside)
        elif name == "BRANCH":
            for branch in value[1]:
                yield from _repeats(branch, inside)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _repeats(value[1], inside)
        elif name == "ATOMIC_GROUP":
            yield from _repeats(value, inside)
        elif name == "GROUPREF_EXISTS":
            yield True


def _chooses(parts: Any) -> bool:
    """Return whether a repeated part is more than one character or class: it may fit in several ways."""
    return len(parts) != 1 or str(parts[0][0]) not in ("LITERAL", "NOT_LITERAL", "IN", "ANY", "CATEGORY")
