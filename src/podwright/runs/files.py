"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path


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
