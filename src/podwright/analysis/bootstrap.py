"""The bootstrap of medians: what the medians of two sets, and their ratio, might as well have been. Pure and seeded."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

from podwright.analysis.statistics import quantile

DRAWS = 10_000
SEED = 20190710
"""Any number: the same samples give the same interval, on any machine and every time."""

Interval = tuple[float, float]


def ratio_draws(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """Return the ratios of medians, B to A, of `DRAWS` pairs of resamples, in order."""
    below, above = median_draws(a, "a"), median_draws(b, "b")
    return sorted(upper / lower for lower, upper in zip(below, above, strict=True))


def median_draws(values: Sequence[float], side: str = "a") -> list[float]:
    """Return the medians of `DRAWS` resamples of a set; the two sides of a comparison are drawn apart."""
    ordered = sorted(values)
    return [(ordered[low] + ordered[high]) / 2 for low, high in _middles(len(ordered), side)]


@lru_cache(maxsize=64)
def _middles(count: int, side: str) -> tuple[tuple[int, int], ...]:
    """Draw which two of `count` ordered values are in the middle of each resample; of an odd number they are one.

    They are drawn at once, by the law of ordered uniform numbers: the k-th of n is distributed as Beta(k, n + 1 - k).
    It is the same as drawing n values and sorting them, and what is drawn does not depend on the values.
    """
    chance, half = random.Random(f"{SEED} {side} {count}"), (count + 1) // 2
    middles = []
    for _ in range(DRAWS):
        position = chance.betavariate(half, count + 1 - half)
        low = high = min(int(position * count), count - 1)
        if count % 2 == 0:
            # The next one up is the least of the `half` that are left above it.
            position += (1 - position) * chance.betavariate(1, half)
            high = min(int(position * count), count - 1)
        middles.append((low, high))
    return tuple(middles)


def interval_of(ordered: Sequence[float], share: float) -> Interval:
    """Return the two values between which this share of ordered draws lies, as much below as above left out."""
    ends = [quantile(ordered, edge) for edge in ((1 - share) / 2, (1 + share) / 2)]
    low, high = (end for end in ends if end is not None)
    return low, high


def median_interval(values: Sequence[float], share: float = 0.95) -> Interval | None:
    """Return the interval of the median of one set; None of fewer than two values."""
    if len(values) < 2:
        return None
    return interval_of(sorted(median_draws(values)), share)
