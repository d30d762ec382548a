"""What labs make once and keep: a folder for each kind in the user's cache, filled by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podwright.files.locks import wait_for


def folder(kind: str) -> Path:
    """Return the folder of one kind of lab."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not caches.is_absolute():
        caches = Path.home() / ".cache"
    return caches / "podwright" / kind


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time make something; the others wait and find it ready."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with wait_for(path):
        yield
