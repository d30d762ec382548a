"""Runs: the record, its state table, its folder, its store and index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.runs import events as events
    from podwright.runs.fold import Fold
    from podwright.runs.folder import LogLine, LogTail, RunFolder, Tail
    from podwright.runs.record import Asked, Record, iso
    from podwright.runs.states import FINAL, SETTLED, STATES
    from podwright.runs.store import Home, default_home

__all__ = [
    "FINAL",
    "SETTLED",
    "STATES",
    "Asked",
    "Fold",
    "Home",
    "LogLine",
    "LogTail",
    "Record",
    "RunFolder",
    "Tail",
    "default_home",
    "events",
    "iso",
]

__getattr__ = late_names(__name__, __file__)
