"""A drawing of boxes, bands and words as SVG that needs nothing else and prints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

_TOKEN = re.compile(r"--([a-z0-9-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\)")
# What is drawn -> the design tokens of its area, edge and words.
CLASSES = {
    "paper": ("paper", None),
    "sunk": ("paper-sunk", "line"),
    "node": ("paper-sunk", "line-strong"),
    "leaf": ("accent-soft", "accent"),
    "spine": ("paper", "series-3"),
    "core": ("paper", "series-2"),
    "storage": ("paper", "series-4"),
    "management": ("paper", "series-5"),
    "nvlink": ("accent-soft", "line-strong"),
    "shelf": ("paper", "series-6"),
    "frame": (None, "line-strong"),
    "hair": (None, "line"),
    "full": ("accent", None),
}
# Bands between tiers.
BANDS = {"band-leaf": "accent-soft", "band-spine": "line"}
WORDS = {"text": "ink", "soft": "ink-soft"}


def palette(tokens: str) -> dict[str, tuple[str, str]]:
    """Read the light and the dark value of each colour from the sheet of design tokens."""
    return {name: (light, dark) for name, light, dark in _TOKEN.findall(tokens)}


class Drawing:
    """Collects what is drawn; sizes are in pixels on the 4-px grid."""

    def __init__(self, title: str, tokens: str) -> None:
        self._title = title
        self._colours = palette(tokens)
        self._parts: list[str] = []
        self._width = 0.0
        self._height = 0.0

    def box(self, kind: str, x: float, y: float, width: float, height: float, hover: str = "") -> None:
        """Draw a box; `hover` is shown by browsers when the pointer rests on it."""
        self._grow(x + width, y + height)
        shape = f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        if hover:
            self._parts.append(f"{shape}><title>{escape(hover)}</title></rect>")
        else:
            self._parts.append(f"{shape}/>")

    def words(self, x: float, y: float, text: str, size: int = 12, kind: str = "text", anchor: str = "start") -> None:
        """Write a line of text; `y` is its base line."""
        wide = len(text) * size * 0.6
        self._grow(x + wide * {"start": 1.0, "middle": 0.5, "end": 0.0}[anchor], y + 4)
        where = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}"'
        self._parts.append(f'<text class="{kind}" {where}>{escape(text)}</text>')

    def line(self, kind: str, points: Sequence[tuple[float, float]]) -> None:
        """Draw a line through points, its corners as they are."""
        self._grow(max(x for x, _ in points), max(y for _, y in points))
        corners = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline class="{kind}" points="{corners}"/>')

    def band(self, kind: str, top: tuple[float, float], bottom: tuple[float, float], y: tuple[float, float]) -> None:
        """Draw a band from one span of x to another, as wide as what it stands for."""
        (a, b), (c, d), (high, low) = top, bottom, y
        self._grow(max(b, d), low)
        middle = (high + low) / 2
        path = (
            f"M{a:g} {high:g} C{a:g} {middle:g} {c:g} {middle:g} {c:g} {low:g} "
            f"L{d:g} {low:g} C{d:g} {middle:g} {b:g} {middle:g} {b:g} {high:g} Z"
        )
        self._parts.append(f'<path class="{kind}" d="{path}"/>')

    def text(self) -> str:
        """Return the whole file."""
        width, height = self._width + 24, self._height + 24
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
        )
        title = f"<title>{escape(self._title)}</title>"
        ground = f'<rect class="paper" width="{width:.0f}" height="{height:.0f}"/>'
        return "\n".join([head, title, self._style(), ground, *self._parts, "</svg>"]) + "\n"

    def _style(self) -> str:
        dark = f"@media screen and (prefers-color-scheme: dark) {{\n{self._rules(1)}\n}}"
        font = "text { font-family: system-ui, sans-serif; font-variant-numeric: tabular-nums; }"
        return f"<style>\n{font}\n{self._rules(0)}\n{dark}\n</style>"

    def _rules(self, theme: int) -> str:
        def colour(name: str | None) -> str:
            return self._colours[name][theme] if name else "none"

        rules = [
            f".{kind} {{ fill: {colour(area)}; stroke: {colour(edge)}; }}" for kind, (area, edge) in CLASSES.items()
        ]
        rules += [f".{kind} {{ fill: {colour(area)}; stroke: none; opacity: .6; }}" for kind, area in BANDS.items()]
        rules += [f".{kind} {{ fill: {colour(ink)}; }}" for kind, ink in WORDS.items()]
        return "\n".join(rules)

    def _grow(self, x: float, y: float) -> None:
        self._width, self._height = max(self._width, x), max(self._height, y)
