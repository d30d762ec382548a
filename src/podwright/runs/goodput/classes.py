"""The classes of time, stretches of time that are divided among them, and how they stay whole. Pure.

Time is counted in whole milliseconds, as events have it: the parts of a stretch sum to its length exactly, and so does
all that is added up of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podwright.runs.fields import LATEST_S

CLASSES = (
    "productive",
    "start",
    "init",
    "compile",
    "restore",
    "data_wait",
    "checkpoint_save",
    "evaluation",
    "lost_work",
    "hang",
    "recovery",
    "teardown",
    "other",
)
TOLD = ("productive", "compile", "restore", "data_wait", "checkpoint_save", "evaluation")
"""What a program knows of its own time; the rest is seen from outside."""
TOLD_AS = {f"spent.{name}": name for name in TOLD}
"""How a program tells it: seconds since it began, growing, beside its steps."""
Parts = Mapping[str, int]


class Stretch(NamedTuple):
    """A stretch of time and the classes it is divided among; their milliseconds sum to its length."""

    begin: int
    end: int
    parts: Parts

    @property
    def length(self) -> int:
        """Return how long it is."""
        return self.end - self.begin


def whole_stretch(begin: int, end: int, name: str) -> Stretch:
    """Return a stretch of one class."""
    return Stretch(begin, end, {name: end - begin})


def scaled(parts: Parts, length: int) -> dict[str, int]:
    """Return parts in the same proportion that sum to another length; the largest remainders take what is left."""
    total = sum(parts.values())
    if total == length:
        return dict(parts)
    if total == 0:
        return {"other": length}
    shares = {name: divmod(value * length, total) for name, value in parts.items()}
    kept = {name: whole for name, (whole, _) in shares.items()}
    left = length - sum(kept.values())
    for name in sorted(shares, key=lambda name: -shares[name][1])[:left]:
        kept[name] += 1
    return kept


def cut(stretch: Stretch, begin: int, end: int) -> Stretch:
    """Return what of a stretch lies between two moments within it."""
    return Stretch(begin, end, scaled(stretch.parts, end - begin))


def renamed(stretch: Stretch, old: str, new: str) -> Stretch:
    """Return a stretch whose time in one class counts as another."""
    if not stretch.parts.get(old):
        return stretch
    parts = {name: value for name, value in stretch.parts.items() if name != old}
    parts[new] = parts.get(new, 0) + stretch.parts[old]
    return stretch._replace(parts=parts)


def milliseconds(seconds: float) -> int:
    """Return seconds as they are counted here; whoever tells of more than there can be has told of that."""
    return round(min(seconds, LATEST_S) * 1000)
