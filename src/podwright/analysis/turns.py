"""In which order the runs of two sides were made: in turns, in blocks, or neither. Pure.

Runs in turns that begin now with one side and now with the other (ABBA) may be compared pair by pair: a machine that
becomes slower meanwhile does so for both.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST_PAIRS = 4
Pairs = list[tuple[int, int]]


def pairs_in_turn(a: Sequence[float], b: Sequence[float]) -> Pairs | None:
    """Return which sample of A goes with which of B by the times when they began; None where they took no turns."""
    if len(a) != len(b) or len(a) < LEAST_PAIRS:
        return None
    pairs, a_first = [], 0
    order = _in_order(a, b)
    for one, two in zip(order[::2], order[1::2], strict=True):
        if one[0] == two[0]:
            return None
        first, second = sorted((one, two))
        pairs.append((first[1], second[1]))
        a_first += one[0] == 0
    return pairs if abs(2 * a_first - len(pairs)) <= 1 else None


def in_blocks(a: Sequence[float], b: Sequence[float]) -> bool:
    """Tell whether all of one side were made before any of the other."""
    return bool(a and b) and (max(a) < min(b) or max(b) < min(a))


def _in_order(a: Sequence[float], b: Sequence[float]) -> list[tuple[int, int]]:
    rows = [(began, 0, index) for index, began in enumerate(a)]
    rows += [(began, 1, index) for index, began in enumerate(b)]
    return [(side, index) for _, side, index in sorted(rows)]
