"""Makes the pictures of designs that docs/design.md shows: drawings as a browser shows them, and a printed sheet.

`python -m scripts.make_pictures` writes docs/images/design-*.png anew; it needs Chromium and pdftoppm.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from scripts.picture_sources import DIGESTS, IMAGES, SHEET, digests, sources

CHROMIUM = "/usr/bin/chromium"
COLOURS = 64


def main() -> None:
    """Draws everything and writes the pictures."""
    texts = sources()
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for name, text in texts.items():
            if name == SHEET:
                print_sheet(browser, text, Path(folder))
            else:
                show(browser, text, Path(folder), name)
        browser.close()
    DIGESTS.write_text(digests(texts), encoding="utf-8")


def show(browser: Browser, text: str, folder: Path, name: str) -> None:
    """Shows a drawing and keeps what is seen."""
    (folder / "drawing.svg").write_text(text, encoding="utf-8")
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto((folder / "drawing.svg").as_uri())
    page.locator("svg").first.screenshot(path=folder / "shown.png")
    page.close()
    keep(folder / "shown.png", name)


def print_sheet(browser: Browser, text: str, folder: Path) -> None:
    """Prints the sheets of racks and keeps the first page."""
    (folder / "racks.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    page.goto((folder / "racks.html").as_uri())
    page.pdf(path=folder / "racks.pdf", format="A4")
    page.close()
    command = ["pdftoppm", "-r", "80", "-f", "1", "-singlefile", "-png", "racks.pdf", "sheet"]
    subprocess.run(command, cwd=folder, check=True)
    keep(folder / "sheet.png", SHEET)


def keep(shown: Path, name: str) -> None:
    """Writes a picture with few colours, which is a quarter of its size and looks the same."""
    with Image.open(shown) as picture:
        picture.convert("RGB").quantize(COLOURS).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
