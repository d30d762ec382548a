"""Runs: the record, its state table, its folder, its store and index."""

from podwright.runs.fold import Fold
from podwright.runs.folder import LogLine, LogTail, RunFolder, Tail
from podwright.runs.record import Asked, Record
from podwright.runs.states import FINAL, SETTLED, STATES
from podwright.runs.store import Home

__all__ = ["FINAL", "SETTLED", "STATES", "Asked", "Fold", "Home", "LogLine", "LogTail", "Record", "RunFolder", "Tail"]
