"""How much lies below a folder, counted without leaving it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MAX_ENTRIES = 2_000_000
"""Of one count: what is beyond them is not counted."""


def bytes_below(folder: Path, most: int = MAX_ENTRIES, shared_too: bool = False) -> int:
    """Return the bytes of the plain files below a folder, on its own device and behind no link, the folder's included.

    A file of several names counts where `shared_too`: others hold it as well.
    """
    try:
        top = folder.lstat()
    except OSError:
        return 0
    total, left, waiting = 0, most, [str(folder)] if stat.S_ISDIR(top.st_mode) else []
    while waiting and left > 0:
        try:
            entries = os.scandir(waiting.pop())
        except OSError:  # it has just gone, or nobody may look
            continue
        with entries:
            for entry in entries:
                left -= 1
                status = _status(entry)
                if status is None or status.st_dev != top.st_dev:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(entry.path)
                elif stat.S_ISREG(status.st_mode) and (shared_too or status.st_nlink == 1):
                    total += status.st_size
                if left <= 0:
                    break
    return total


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None
