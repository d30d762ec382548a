"""The folder that holds all of a lab: worked on by one command at a time, and removed whole."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podwright.spec.problems import refuse


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lets one command at a time work on a lab; whoever waited while it was taken down finds none."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise _no_lab(folder) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not os.fstat(descriptor).st_nlink:
            raise _no_lab(folder)
        yield
    finally:
        os.close(descriptor)


def _no_lab(folder: Path) -> Exception:
    return refuse(f"there is no lab in {folder}", hint="`podwright lab up` makes one")


def remove(folder: Path) -> None:
    """Removes the lab's folder; a process that is ending may still write into it."""
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
    shutil.rmtree(folder)
