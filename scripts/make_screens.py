"""Makes the pictures of the live view in the docs from what a real terminal shows of a run.

    python -m scripts.make_screens

It needs tmux and gcc. The GPUs in the pictures are the tests' stand-in for NVIDIA's library.
"""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from tests.fixtures.screen import Scene, Screen
from tests.paths import ROOT

IMAGES = ROOT / "docs" / "images"


def main() -> None:
    """Start the run, look at it on three screens, and draw each."""
    with tempfile.TemporaryDirectory(prefix="podwright-") as name:
        folder = Path(name)
        scene = Scene(folder, folder / "home")
        screens = {
            "live-80": (Screen(folder, 80, 24), ("run",), "podwright run"),
            "live-160": (Screen(folder, 160, 50), ("attach", "last"), "podwright attach last"),
            "top": (Screen(folder, 80, 24), ("top",), "podwright top"),
        }
        try:
            for picture, (screen, words, title) in screens.items():
                scene.start(screen, *words)
                screen.until(_is_worth_it, "the straggler")
                text = screen.text(colours=True).rstrip()
                (IMAGES / f"{picture}.svg").write_text(drawn(text, screen.columns, title), encoding="utf-8")
            scene.end()
            screens["live-80"][0].until(lambda text: "succeeded" in text, "the end of the run")
        finally:
            for screen, *_ in screens.values():
                screen.close()


def _is_worth_it(text: str) -> bool:
    shows_pace = "ETA" in text or "podwright top" in text
    return "straggler" in text and shows_pace


def drawn(text: str, columns: int, title: str) -> str:
    """Return a screen as SVG; its font is the reader's own: no picture fetches one."""
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(f"{text}\n"), soft_wrap=False)
    svg = console.export_svg(title=title, theme=SVG_EXPORT_THEME, unique_id=title.replace(" ", "-"))
    svg = re.sub(r"@font-face \{.*?\}\n", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", "ui-monospace, DejaVu Sans Mono, monospace")


if __name__ == "__main__":
    main()
