"""The exact Mann-Whitney test: how likely two sets of one kind would lie as far apart as these do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import comb
from statistics import NormalDist

MAX_EXACT, MAX_UNEVEN, FEW = 120, 600, 8
"""Values of both sides together up to which all orders are counted, and up to which where one side has few; beyond,
the normal form is as good."""


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p of two sets that are not empty; values that are equal share their ranks."""
    return min(1.0, 2 * min(above_test(a, b), above_test(b, a)))


def above_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the one-sided p of B lying above A: how likely it would lie as high, or higher, by chance."""
    ranks, smaller = _doubled_ranks([*a, *b]), min(len(a), len(b))
    if len(ranks) > (MAX_UNEVEN if smaller <= FEW else MAX_EXACT):
        return _normal(ranks, len(a))
    own, is_low = (ranks[: len(a)], True) if len(a) <= len(b) else (ranks[len(a) :], False)
    ways, at = _ways(tuple(sorted(ranks)), smaller), sum(own)
    return sum(ways[: at + 1] if is_low else ways[at:]) / comb(len(ranks), smaller)


def least_p(a: int, b: int) -> float:
    """Return the smallest two-sided p that sets of these sizes can have: all of one lie above all of the other."""
    return min(1.0, 2 / comb(a + b, a))


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Return the rank of each value, from 1, times two: a rank that several values share may end in a half."""
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for rank, value in enumerate(sorted(values), start=1):
        first.setdefault(value, rank)
        last[value] = rank
    return [first[value] + last[value] for value in values]


@lru_cache(maxsize=64)
def _ways(ranks: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return for each sum how many choices of `size` of these ranks add up to it.

    The counts of all sums stand side by side in one long integer, so that adding a rank to every choice at once is a
    shift: a thousand times faster than counting sum by sum.
    """
    width = comb(len(ranks), size).bit_length()
    chosen = [1] + [0] * size
    for rank in ranks:
        for count in range(size, 0, -1):
            chosen[count] += chosen[count - 1] << (width * rank)
    mask, greatest = (1 << width) - 1, sum(ranks[-size:])
    return tuple((chosen[size] >> (width * at)) & mask for at in range(greatest + 1))


def _normal(ranks: Sequence[int], size: int) -> float:
    """Return p by the normal distribution, with the spread that the shared ranks leave and half a step taken off."""
    count = len(ranks)
    middle = sum(ranks) / count
    variance = size * (count - size) / (count * (count - 1)) * sum((rank - middle) ** 2 for rank in ranks)
    if not variance:
        return 1.0
    below = size * middle - sum(ranks[:size])
    return 1 - NormalDist().cdf((below - 1) / variance**0.5)
