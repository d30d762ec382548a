"""A pod in many sizes as a curve: its switches for each node, over its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from podwright.design.cliffs import CHEAPER
from podwright.design.exports.svg import Drawing

LEFT, TOP, WIDTH, HEIGHT = 80.0, 96.0, 640.0, 240.0
MARKS = 5
DOT = 6.0


def sweep_svg(name: str, sizes: Sequence[tuple[int, int]], tokens: str) -> str:
    """Return the curve of sizes, each its nodes and switches; jumps are named at their last cheap size."""
    drawing = Drawing(f"{name}: sizes", tokens)
    drawing.words(24, 32, f"{name}: switches for each node", 20)
    text = "squares: sizes that were designed; numbers: the last size before switches jump"
    drawing.words(24, 52, text, 12, "soft")
    if not sizes:
        drawing.words(LEFT, TOP, "none of these sizes can be designed", 12)
        return drawing.text()
    first, last = sizes[0][0], sizes[-1][0]
    top = max(switches / nodes for nodes, switches in sizes) * 1.1

    def at(nodes: float, share: float) -> tuple[float, float]:
        across = (nodes - first) / max(last - first, 1)
        return round(LEFT + WIDTH * across, 1), round(TOP + HEIGHT * (1 - share / top), 1)

    for mark in range(MARKS):
        nodes, share = first + (last - first) * mark / (MARKS - 1), top * mark / (MARKS - 1)
        x, y = at(nodes, share)
        drawing.line("hair", [(x, TOP), (x, TOP + HEIGHT)])
        drawing.words(x, TOP + HEIGHT + 16, f"{nodes:,.0f}", 11, "soft", "middle")
        drawing.line("hair", [(LEFT, y), (LEFT + WIDTH, y)])
        drawing.words(LEFT - 8, y + 4, f"{share:.2f}", 11, "soft", "end")
    drawing.words(LEFT + WIDTH / 2, TOP + HEIGHT + 36, "nodes", 11, "soft", "middle")
    drawing.line("frame", [at(nodes, switches / nodes) for nodes, switches in sizes])
    for nodes, switches in sizes:
        x, y = at(nodes, switches / nodes)
        drawing.box("leaf", x - DOT / 2, y - DOT / 2, DOT, DOT, f"{nodes:,} nodes: {switches:,} switches")
    for (nodes, switches), (more, others) in pairwise(sizes):
        if switches / nodes <= CHEAPER * others / more:
            x, y = at(nodes, switches / nodes)
            drawing.words(x, y + 20, f"{nodes:,}", 11, "text", "middle")
    return drawing.text()
