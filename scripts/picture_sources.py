"""What the pictures of designs in docs/design.md show: drawings and a sheet as text, and the digests of these.

The digests lie beside the pictures and are written with them: a drawing that changed without its picture is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from podwright import theme
from podwright.design import Design
from podwright.design.exports.fabric_drawing import fabric_svg
from podwright.design.exports.rack_drawing import racks_svg
from podwright.design.exports.sheets import rack_sheets
from podwright.spec import Pod, load_pod

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
DIGESTS = IMAGES / "design-sources.sha256"
# The one picture that is printed and not shown.
SHEET = "design-140-sheet"


def sources() -> dict[str, str]:
    """Return the text of each picture's drawing or sheet by the picture's name."""
    tokens = theme.asset("tokens.css")
    large = {"name": "large", "nodes": [{"hosts": "dgx[0001-1023]", "model": "dgx-h100"}]}
    small, middle = (Design.of(load_pod(ROOT / "examples" / f"superpod-{nodes}.yaml")) for nodes in (20, 140))
    texts = {SHEET: rack_sheets(middle, tokens)}
    for size, design in {"20": small, "140": middle, "1024": Design.of(Pod.model_validate(large))}.items():
        texts[f"design-{size}-compute"] = fabric_svg(design, "compute", tokens)
        rows = racks_svg(design, tokens)
        # The row in the middle has both nodes and the switches that all of them share.
        row = sorted(rows, key=lambda name: (len(name), name))[len(rows) // 2]
        texts[f"design-{size}-racks"] = rows[row]
    return dict(sorted(texts.items()))


def digests(texts: Mapping[str, str]) -> str:
    """Return a line for each text, in the form of `sha256sum`."""
    lines = [f"{hashlib.sha256(text.encode()).hexdigest()}  {name}" for name, text in texts.items()]
    return "\n".join(lines) + "\n"
