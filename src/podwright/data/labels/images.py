"""Label images, the classes that they show, and what was counted in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LabelClass:
    """One class, and the colours that mean it in label images, as numbers 0xrrggbb."""

    name: str
    colours: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelFile:
    """A file that class counts belong to; `label` is the folder that tells the class, where one does."""

    id: int
    path: bytes
    shown: str
    label: str = ""


OF_UNKNOWN_COLOURS = "has only colours that mean no class"
"""Why a label has no counts that could be read and shows nothing of what is known."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of one file: a value for each class, and what means no class; or why there are none."""

    file: int
    counts: Sequence[int] | None
    unknown: int = 0
    why: str = ""
    is_read: bool = True
    """Where it is not, nothing is known of what is in the file: it is read again the next time."""
