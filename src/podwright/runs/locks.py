"""Locks that are files: whoever holds one, it cannot outlive its holder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a file's lock within the block, and yield whether it is held: whoever finds it taken leaves it so."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # its folder is gone, or something else lies there
        yield False
        return
    try:
        yield _take(file, fcntl.LOCK_EX)
    finally:
        os.close(file)


def locked_text(path: Path) -> str | None:
    """Return what the holder of a lock wrote into its file; None when nobody holds it."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if _take(file, fcntl.LOCK_SH):
            return None
        return os.read(file, 4096).decode("utf-8", "replace")
    except OSError:  # no plain file
        return None
    finally:
        os.close(file)


def _take(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
