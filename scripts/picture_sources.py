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
from podwright.design.exports.sweep_drawing import sweep_svg
from podwright.spec import Pod, load_pod

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
DIGESTS = IMAGES / "design-sources.sha256"
# What `design --sweep nodes=100..300` counts for DGX H100: nodes and their switches.
SWEPT = (
    (100, 78),
    (109, 78),
    (117, 80),
    (126, 80),
    (127, 80),
    (128, 109),
    (135, 109),
    (143, 111),
    (152, 112),
    (161, 124),
    (170, 126),
    (178, 126),
    (187, 126),
    (196, 137),
    (204, 139),
    (213, 139),
    (222, 139),
    (230, 152),
    (239, 152),
    (248, 153),
    (255, 153),
    (256, 307),
    (257, 307),
    (265, 307),
    (274, 307),
    (283, 307),
    (291, 325),
    (300, 325),
)
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
    planes = {"compute": {"kind": "ethernet", "switch": "sn5600", "planes": 2}}
    multi = {"name": "planes", "nodes": [{"hosts": "dgx[0001-0128]", "model": "dgx-b300"}], "fabrics": planes}
    texts["design-planes-compute"] = fabric_svg(Design.of(Pod.model_validate(multi)), "compute", tokens)
    domains = {"name": "domains", "nodes": [{"hosts": "dgx[001-144]", "model": "dgx-gb200"}]}
    nvl72 = Design.of(Pod.model_validate(domains))
    texts["design-nvl72-compute"] = fabric_svg(nvl72, "compute", tokens)
    texts["design-nvl72-racks"] = next(iter(racks_svg(nvl72, tokens).values()))
    texts["design-sweep"] = sweep_svg("large", SWEPT, tokens)
    return dict(sorted(texts.items()))


def digests(texts: Mapping[str, str]) -> str:
    """Return a line for each text, in the form of `sha256sum`."""
    lines = [f"{hashlib.sha256(text.encode()).hexdigest()}  {name}" for name, text in texts.items()]
    return "\n".join(lines) + "\n"
