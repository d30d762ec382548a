"""The fabric as a graph for Graphviz: switches and scalable units, one edge for all cables of a pair."""

from __future__ import annotations

from collections import Counter

from podwright.design.plan import Design


def dot(design: Design, fabric: str) -> str:
    """Return one fabric; nodes are drawn by unit, since two thousand boxes say nothing."""
    unit_of: dict[str, str] = {}
    for number, unit in enumerate(design.topology.units, 1):
        unit_of |= dict.fromkeys(unit.hosts, f"unit {number}")
    lines = [f'graph "{design.pod.name} {fabric}" {{', "  rankdir=BT;", "  node [shape=box, fontname=sans-serif];"]
    for tier in ("leaf", "spine", "core"):
        names = [switch.name for switch in design.wired[fabric].switches if switch.tier == tier]
        if names:
            lines.append("  { rank=same; " + " ".join(f'"{name}";' for name in names) + " }")
    pairs = Counter((unit_of.get(cable.a, cable.a), cable.b) for cable in design.wired[fabric].cables)
    lines += [f'  "{a}" -- "{b}" [label="{count}"];' for (a, b), count in pairs.items()]
    return "\n".join([*lines, "}"]) + "\n"
