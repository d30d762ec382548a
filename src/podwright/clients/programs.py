"""What other programs say."""

from __future__ import annotations


def last_line(text: str, default: str) -> str:
    """Return the last line that a program wrote, which most often says why it failed; the default if it is silent."""
    lines = text.strip().splitlines()
    if not lines:
        return default
    return lines[-1]
