"""Checkpoints as the leader notices them: by the files that appear in their folder."""

from __future__ import annotations

import os
from typing import NamedTuple, Optional


class Checkpoint(NamedTuple):
    """A file or folder that a rank wrote; ordered by time, since that is its first field."""

    written_at: float
    name: str
    size_bytes: int


class CheckpointWatch:
    """Tells each newest checkpoint once. `since` is when the watch began: what is older was there before the run."""

    def __init__(self, folder: str = "", since: float = 0.0) -> None:
        self._folder = folder
        self._since = since

    def look(self) -> Optional[Checkpoint]:
        """Return the newest checkpoint unless it was told already; a folder that cannot be read has none."""
        try:
            newest = self._newest()
        except OSError:
            return None
        if newest is None or newest.written_at <= self._since:
            return None
        self._since = newest.written_at
        return newest

    def _newest(self) -> Optional[Checkpoint]:
        if not self._folder:
            return None
        checkpoints = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                # A hidden one is still being written.
                if not entry.name.startswith("."):
                    facts = entry.stat()
                    checkpoints.append(Checkpoint(facts.st_mtime, entry.name, facts.st_size))
        return max(checkpoints, default=None)
