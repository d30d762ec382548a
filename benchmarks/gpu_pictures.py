"""Pictures of what was measured on a GPU: where the time of a step goes, and the two loss curves.

python3 benchmarks/gpu_pictures.py        reads results/gpu_step_*.json and gpu_curve.json, writes an SVG beside each
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

from measure import RESULTS, say, start

KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("attention", ("sdpa", "cudnn::fusion")),
    ("update of the weights", ("rsub_sqrt_sub", "multi_tensor_apply", "lerp")),
    ("matrix products, convolutions", ("nvjet", "gemm", "cutlass", "cublas", "convolve", "sm90_", "sm80_")),
    ("loss", ("loss_kernel",)),
    ("norms, and what is fused with them", ("norm",)),
    ("activations", ("gelu", "relu", "threshold")),
)
"""Kinds of kernel and what their names hold; the first that fits counts."""
OTHER = "other"
STYLE = "text{font:13px sans-serif;fill:#1c2733}.small{font-size:11px;fill:#5b6b7b}"
COLOURS = ("#2f6fb2", "#d9822b")
WIDTH = 760


def kind_of(kernel: str) -> str:
    """What a kernel does."""
    return next((kind for kind, marks in KINDS if any(mark in kernel for mark in marks)), OTHER)


def shares(kernels: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Milliseconds of a step by kind, the longest first."""
    spent: dict[str, float] = {}
    for row in kernels:
        kind = kind_of(row["kernel"])
        spent[kind] = spent.get(kind, 0.0) + row["ms"]
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def svg(height: float, title: str, parts: Sequence[str]) -> str:
    """A picture of these parts under a title."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">'
    ground = f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/><text x="16" y="26">{escape(title)}</text>'
    return "\n".join([head, f"<title>{escape(title)}</title><style>{STYLE}</style>", ground, *parts, "</svg>\n"])


def bars(title: str, spent: dict[str, float]) -> str:
    """One bar for each kind of kernel."""
    total, longest, parts = sum(spent.values()), max(spent.values()), []
    for row, (kind, ms) in enumerate(spent.items()):
        top, length = 44 + row * 26, 360 * ms / longest
        parts.append(f'<text x="16" y="{top + 14}">{escape(kind)}</text>')
        parts.append(f'<rect x="260" y="{top}" width="{length:.1f}" height="18" rx="2" fill="{COLOURS[0]}"/>')
        figure = f"{ms:.1f} ms, {100 * ms / total:.0f} %"
        parts.append(f'<text class="small" x="{268 + length:.1f}" y="{top + 13}">{figure}</text>')
    return svg(60 + 26 * len(spent), title, parts)


def curves(title: str, losses: dict[str, list[float]]) -> str:
    """One line for each arm, over the steps; the loss on a logarithmic scale."""
    values = list(chain.from_iterable(losses.values()))
    low, high = math.log(min(values)), math.log(max(values))
    parts = []
    for (name, curve), colour, row in zip(losses.items(), COLOURS, range(2), strict=True):
        points = " ".join(
            f"{60 + 680 * step / (len(curve) - 1):.1f},{300 - 240 * (math.log(loss) - low) / (high - low):.1f}"
            for step, loss in enumerate(curve)
        )
        dash = ' stroke-dasharray="5 4"' * row
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        parts.append(f'<text x="600" y="{70 + 20 * row}" style="fill:{colour}">{escape(name)}</text>')
    for log in (low, (low + high) / 2, high):
        top = 300 - 240 * (log - low) / (high - low)
        parts.append(f'<text class="small" x="16" y="{top + 4:.1f}">{math.exp(log):.2f}</text>')
    parts.append(
        f'<text class="small" x="60" y="322">step 0</text><text class="small" x="700" y="322">{len(curve)}</text>'
    )
    return svg(336, title, parts)


def picture_of(path: Path) -> str:
    """The picture of a result."""
    document = json.loads(path.read_text())
    if "losses" in document:
        return curves(f"GPT {document['size']}: loss, fp32 and bf16 weights", document["losses"])
    raw = document["raw"]
    case = path.stem.removeprefix("gpu_step_")
    spent = shares(raw["kernels"])
    shown = f"{sum(spent.values()):.0f} ms of a step, its {len(raw['kernels'])} longest kernels"
    title = f"{case} on one {document['machine']['gpu']}: {shown}"
    return bars(title, spent)


def main() -> int:
    """Write the picture of each result."""
    for path in [*sorted(RESULTS.glob("gpu_step_*.json")), RESULTS / "gpu_curve.json"]:
        path.with_suffix(".svg").write_text(picture_of(path))
        say(f"wrote {path.with_suffix('.svg').name}")
    return 0


if __name__ == "__main__":
    start(main)
