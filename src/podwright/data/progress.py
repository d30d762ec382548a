"""How far long work is: the one thing that whoever asked for it hears meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Advance:
    """How much of what is done, of how much where that is known; of a `run` that was submitted the id as text."""

    what: Literal["scan", "checksums", "stats", "staging", "export", "run"]
    done: int = 0
    total: int | None = None
    text: str = ""


Progress = Callable[[Advance], None]


def unheard(advance: Advance) -> None:
    """Hear of progress and say nothing."""
