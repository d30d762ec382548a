"""Paths are bytes. What is shown of one that is no UTF-8 is escaped, and its bytes stand beside it."""

from __future__ import annotations

import base64
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BelowRoot:
    """A path below a dataset's root; `raw` has its bytes where the text does not tell them."""

    path: str
    raw: bytes | None

    @property
    def path_bytes(self) -> bytes:
        """Return the path itself."""
        if self.raw is None:
            return self.path.encode()
        return self.raw


def shown(raw: bytes) -> str:
    """Return a path as text; where it is no UTF-8, its odd bytes and its per cent signs are escaped (`%FF`)."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "surrogateescape").replace("%", "%25")
    return "".join(f"%{ord(char) - 0xDC00:02X}" if "\udc80" <= char <= "\udcff" else char for char in text)


def odd_bytes(raw: bytes) -> bytes | None:
    """Return the bytes of a path where its text alone does not tell them, else None."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw
    return None


def as_json(path: str, raw: bytes | None) -> dict[str, str]:
    """Return the keys that a path has in a JSON document."""
    if raw is None:
        return {"path": path}
    return {"path": path, "path_bytes": base64.b64encode(raw).decode("ascii")}


def path_bytes(folder_raw: bytes | None, name_raw: bytes | None, folder: str, name: str) -> bytes | None:
    """Return a path as bytes where either of its parts is no text, else None."""
    if folder_raw is None and name_raw is None:
        return None
    return (folder_raw or folder.encode()) + (name_raw or name.encode())
