"""The fabric as a graph for Graphviz: scalable units and switches, one edge for all cables of a pair.

A tier of many switches is drawn by plane, since a row of eighty boxes is a strip and no picture.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from podwright.design.plan import Blueprint

TIERS = ("leaf", "spine", "core")
# A tier with more switches than these has one box for each plane.
MAX_BOXES = 12


def dot(design: Blueprint, fabric: str) -> str:
    """Return one fabric; boxes are joined by the number of cables between them."""
    boxes = _boxes(design, fabric)
    lines = [
        f'graph "{design.pod.name} {fabric}" {{',
        '  graph [rankdir=BT, ranksep=1.6, nodesep=0.2, fontname="sans-serif"];',
        '  node [shape=box, fontname="sans-serif"];',
        '  edge [fontname="sans-serif", fontsize=10];',
    ]
    for tier in TIERS:
        names = dict.fromkeys(boxes[switch.name] for switch in design.wired[fabric].switches if switch.tier == tier)
        if names:
            # Edges that nobody sees hold the boxes of a tier in their order: Graphviz would mix the rails.
            chain = " -- ".join(f'"{name}"' for name in names)
            lines.append(f"  {{ rank=same; edge [style=invis]; {chain}; }}")
    pairs = Counter((boxes[cable.a], boxes[cable.b]) for cable in design.wired[fabric].cables)
    lines += [f'  "{a}" -- "{b}" [label="{count}"];' for (a, b), count in pairs.items()]
    return "\n".join([*lines, "}"]) + "\n"


def _boxes(design: Blueprint, fabric: str) -> dict[str, str]:
    """Return for each device the box it is drawn in."""
    boxes = _unit_boxes(design)
    switches = design.wired[fabric].switches
    sizes = Counter(switch.tier for switch in switches)
    planes: dict[tuple[str, int], list[str]] = defaultdict(list)
    for number, switch in enumerate(switches):
        # A switch that is drawn alone has a key of its own.
        plane = switch.plane if sizes[switch.tier] > MAX_BOXES else -number
        planes[(switch.tier, plane)].append(switch.name)
    for names in planes.values():
        boxes |= dict.fromkeys(names, _box(names, "switches"))
    others = list(dict.fromkeys(cable.a for cable in design.wired[fabric].cables if cable.a not in boxes))
    return boxes | dict.fromkeys(others, _box(others, "devices"))


def _unit_boxes(design: Blueprint) -> dict[str, str]:
    """Return for each host its unit; many units are drawn by their group."""
    units = design.topology.units
    groups: dict[int, list[int]] = defaultdict(list)
    for number, unit in enumerate(units, 1):
        group = unit.group or 0 if len(units) > MAX_BOXES else -number
        groups[group].append(number)
    boxes: dict[str, str] = {}
    for numbers in groups.values():
        box = _box([f"unit {number}" for number in numbers], "units")
        for number in numbers:
            boxes |= dict.fromkeys(units[number - 1].hosts, box)
    return boxes


def _box(names: Sequence[str], noun: str) -> str:
    """Return what stands in a box; Graphviz reads `\\n` as the end of a line."""
    if len(names) <= 1:
        return "".join(names)
    return f"{names[0]}\\nto {names[-1]}\\n{len(names)} {noun}"
