"""How things look and read: design tokens, charts, and numbers as people read them, on pages and in the terminal."""

from __future__ import annotations

from importlib import resources


def asset(name: str) -> str:
    """Return the text of a style sheet or script that pages, drawings and docs share."""
    return (resources.files("podwright.theme") / "assets" / name).read_text("utf-8")
