"""The exception that a program ended with, by the last lines it wrote."""

from __future__ import annotations

import re
from typing import Sequence

MAX_LETTERS = 200
_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Expired|NotFound)(?::.*)?")


def raised(tail: Sequence[str]) -> str:
    """Return the line by which Python names the exception, the last of them; nothing where there is none."""
    for line in reversed(tail):
        if _RAISED.fullmatch(line.rstrip()):
            return line.rstrip()[:MAX_LETTERS]
    return ""
