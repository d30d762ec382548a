"""Checkpoints as the leader notices them: by the files that appear in their folder."""

from __future__ import annotations

import os
from typing import Callable, List, Optional, Tuple


class CheckpointWatch:
    """Reports each newest checkpoint once. `since` is when the watch began: what is older was there before the run."""

    def __init__(self, folder: str = "", since: float = 0.0) -> None:
        self._folder, self._since = folder, since
        self.at: Optional[float] = None
        """When the newest one of this run was written."""

    def tell(self, say: Callable[..., None]) -> None:
        """Say which checkpoint is new since the last look, if one is."""
        newest = self.look()
        if newest:
            say("checkpoint", name=newest[0], bytes=newest[1], written_at=round(self._since, 3))

    def look(self) -> Optional[Tuple[str, int]]:
        """Return (name, bytes) of the newest checkpoint, unless it was reported already or there is none."""
        written_at, name, size = max(self._files(), default=(0.0, "", 0))
        if written_at <= self._since:
            return None
        self._since = self.at = written_at
        return name, size

    def _files(self) -> List[Tuple[float, str, int]]:
        try:
            with os.scandir(self._folder) as entries:
                # A hidden one is still being written.
                shown = [entry for entry in entries if not entry.name.startswith(".")]
            return [(entry.stat().st_mtime, entry.name, entry.stat().st_size) for entry in shown]
        except OSError:
            return []
