"""How processes hang together, as the kernel is asked.

A module of its own since a rank's shim needs it and must start quickly.
"""

from __future__ import annotations

import ctypes
import os

SIGKILL = 9
"""As in `signal`, which takes longer to import than all else here."""
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def die_with_parent(parent: int) -> None:
    """Be killed when the parent dies, even by kill -9; gone at once if it is dead already."""
    _prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), SIGKILL)


def adopt_orphans() -> bool:
    """Become the parent of grandchildren whose own died, so that no double fork escapes a tree's end."""
    return _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> bool:
    try:
        return bool(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False
