"""What the kernels of a GPU come to: which took longest, how long any ran, and the stretches in which none did."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

Kernel = tuple[float, float, str]
"""From, to, in seconds, and its name."""
MAX_OPERATIONS, MAX_GAPS = 15, 5


def summary_of(kernels: Iterable[Kernel]) -> dict[str, Any]:
    """What a profile says of a GPU."""
    listed = sorted(kernels)
    busy, gaps = idle(listed)
    return {"busy_s": busy, "operations": longest(listed), "gaps": gaps}


def longest(kernels: Iterable[Kernel]) -> list[dict[str, Any]]:
    """The kernels that took longest, each with the sum of its calls."""
    rows: dict[str, dict[str, Any]] = {}
    for start, end, name in kernels:
        row = rows.setdefault(name, {"name": name, "seconds": 0.0, "calls": 0})
        row["seconds"] += end - start
        row["calls"] += 1
    return sorted(rows.values(), key=lambda row: -float(row["seconds"]))[:MAX_OPERATIONS]


def idle(kernels: Iterable[Kernel]) -> tuple[float, list[dict[str, Any]]]:
    """How long any kernel ran, and the longest stretches in which none did, with what was around them."""
    joined: list[tuple[float, float, str, str]] = []  # from, to, the first and the last kernel
    for start, end, name in kernels:
        if joined and start <= joined[-1][1]:
            first, last, head, tail = joined[-1]
            joined[-1] = (first, max(last, end), head, name if end >= last else tail)
        else:
            joined.append((start, end, name, name))
    busy = sum(end - start for start, end, _, _ in joined)
    gaps: list[dict[str, Any]] = []
    for before, after in pairwise(joined):
        gaps.append({"seconds": after[0] - before[1], "after": before[3], "before": after[2]})
    return busy, sorted(gaps, key=lambda gap: -float(gap["seconds"]))[:MAX_GAPS]
