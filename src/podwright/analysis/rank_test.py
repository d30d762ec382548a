"""The exact Mann-Whitney test: how likely two sets of one kind would lie as far apart as these do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

MAX_EXACT = 120
"""Values of both sides together up to which all orders are counted; beyond, the normal form is as good."""


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p of two sets that are not empty; values that are equal share their ranks."""
    ranks = _doubled_ranks([*a, *b])
    if len(ranks) > MAX_EXACT:
        return _normal(ranks, len(a))
    ways = _ways(tuple(sorted(ranks)), len(a))
    total, at = sum(ways), sum(ranks[: len(a)])
    return min(1.0, 2 * min(sum(ways[: at + 1]), sum(ways[at:])) / total)


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
    width = len(ranks) + 1  # there are fewer than 2 ** len(ranks) choices in all
    chosen = [1] + [0] * size
    for rank in ranks:
        for count in range(size, 0, -1):
            chosen[count] += chosen[count - 1] << (width * rank)
    mask = (1 << width) - 1
    packed, sums = chosen[size], sum(ranks)
    return tuple((packed >> (width * at)) & mask for at in range(sums + 1))


def _normal(ranks: Sequence[int], size: int) -> float:
    """Return p by the normal distribution, with the spread that the shared ranks leave and half a step taken off."""
    count = len(ranks)
    middle = sum(ranks) / count
    variance = size * (count - size) / (count * (count - 1)) * sum((rank - middle) ** 2 for rank in ranks)
    if not variance:
        return 1.0
    apart = max(0.0, abs(sum(ranks[:size]) - size * middle) - 1)
    return 2 * (1 - NormalDist().cdf(apart / variance**0.5))
