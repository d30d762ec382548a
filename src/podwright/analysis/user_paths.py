"""Paths of code as its owner knows them, in place of where it was unpacked on a node. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_UNPACKED = re.compile(r"[^\s'\"(<>:=,]*/code-[0-9a-f]{12}/")


def as_owner_knows(text: str, code: Mapping[str, Any] | None) -> str:
    """Return a text with paths below the folder that the code came from; of code from elsewhere paths are relative."""
    folder = (code or {}).get("folder")
    place = f"{folder.rstrip('/')}/" if isinstance(folder, str) and folder else ""
    return _UNPACKED.sub(lambda _: place, text)
