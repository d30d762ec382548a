"""How things look and read: design tokens, charts, and numbers as people read them, on pages and in the terminal."""

from __future__ import annotations


def asset(name: str) -> str:
    """Return the text of a style sheet or script that pages, drawings and docs share."""
    # Imported here: commands that draw nothing take their words from this package too.
    from importlib import resources

    return (resources.files("podwright.theme") / "assets" / name).read_text("utf-8")
