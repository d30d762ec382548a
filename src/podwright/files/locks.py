"""Locks that are files: whoever holds one, it cannot outlive its holder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a file's lock within the block, and yield whether it is held: whoever finds it taken leaves it so."""
    try:
        file = os.open(path, _FLAGS, 0o600)
    except OSError:  # its folder is gone, or something else lies there
        yield False
        return
    try:
        yield _take(file, fcntl.LOCK_EX)
    finally:
        os.close(file)


@contextmanager
def only(path: Path, otherwise: Exception) -> Iterator[None]:
    """Hold a file's lock within the block, or raise this where somebody else does."""
    with try_lock(path) as is_held:
        if not is_held:
            raise otherwise
        yield


@contextmanager
def wait_for(path: Path, waits: Callable[[], None] = lambda: None) -> Iterator[int]:
    """Hold a file's lock within the block, after its holder has ended; `waits` is called before a wait.

    Yield the file's number: a program that inherits it holds the lock too.
    """
    file = os.open(path, _FLAGS, 0o600)
    try:
        if not _take(file, fcntl.LOCK_EX):
            waits()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
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
