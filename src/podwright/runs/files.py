"""Files that appear whole or not at all, and files that others wrote."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

MOST_BYTES = 16 << 20
"""Of a file that is read at once: none that Podwright writes comes near it."""


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write the whole file or none of it, whatever happens meanwhile; it gets this mode, whatever the umask is."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_plain(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return what a plain file holds; OSError for anything else, such as a pipe that would never end, or too much."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is no plain file")
        if status.st_size > most_bytes:
            raise OSError(0, f"it has more than {most_bytes} bytes")
        return opened.read(most_bytes)
