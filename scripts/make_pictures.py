"""Makes the pictures of designs that docs/design.md shows: drawings as a browser shows them, and a printed sheet.

`python -m scripts.make_pictures` writes docs/images/design-*.png anew; it needs Chromium and pdftoppm.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from podwright import theme
from podwright.design.exports.fabric_drawing import fabric_svg
from podwright.design.exports.rack_drawing import racks_svg
from podwright.design.exports.sheets import rack_sheets
from podwright.design.plan import Design, design_pod
from podwright.spec import Pod, load_pod

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
CHROMIUM = "/usr/bin/chromium"
COLOURS = 64


def main() -> None:
    """Draws everything and writes the pictures."""
    tokens = theme.asset("tokens.css")
    large = {"name": "large", "nodes": [{"hosts": "dgx[0001-1023]", "model": "dgx-h100"}]}
    small, middle = (design_pod(load_pod(ROOT / "examples" / f"superpod-{nodes}.yaml")) for nodes in (20, 140))
    designs = {"20": small, "140": middle, "1024": design_pod(Pod.model_validate(large))}
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"])
        for size, design in designs.items():
            show(browser, fabric_svg(design, "compute", tokens), Path(folder), f"design-{size}-compute")
            rows = racks_svg(design, tokens)
            # The row in the middle has both nodes and the switches that all of them share.
            row = sorted(rows, key=lambda name: (len(name), name))[len(rows) // 2]
            show(browser, rows[row], Path(folder), f"design-{size}-racks")
        print_sheet(browser, designs["140"], Path(folder), tokens)
        browser.close()


def show(browser: Browser, text: str, folder: Path, name: str) -> None:
    """Shows a drawing and keeps what is seen."""
    (folder / "drawing.svg").write_text(text, encoding="utf-8")
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto((folder / "drawing.svg").as_uri())
    page.locator("svg").first.screenshot(path=folder / "shown.png")
    page.close()
    keep(folder / "shown.png", name)


def print_sheet(browser: Browser, design: Design, folder: Path, tokens: str) -> None:
    """Prints the sheets of racks and keeps the first page."""
    (folder / "racks.html").write_text(rack_sheets(design, tokens), encoding="utf-8")
    page = browser.new_page()
    page.goto((folder / "racks.html").as_uri())
    page.pdf(path=folder / "racks.pdf", format="A4")
    page.close()
    command = ["pdftoppm", "-r", "80", "-f", "1", "-singlefile", "-png", "racks.pdf", "sheet"]
    subprocess.run(command, cwd=folder, check=True)
    keep(folder / "sheet.png", "design-140-sheet")


def keep(shown: Path, name: str) -> None:
    """Writes a picture with few colours, which is a quarter of its size and looks the same."""
    with Image.open(shown) as picture:
        picture.convert("RGB").quantize(COLOURS).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
