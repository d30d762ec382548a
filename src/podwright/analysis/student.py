"""Student's t on the logarithms of samples: how far apart two sides lie as a share, and how sure that is. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean

from podwright.analysis.statistics import logarithms, squares

_NORMAL_FROM = 200
"""Degrees of freedom from which the normal distribution is as good."""


@dataclass(frozen=True)
class LogRatio:
    """The logarithm of a ratio, its standard error and the degrees of freedom that the error is known with."""

    middle: float
    error: float
    freedom: int

    @property
    def p(self) -> float:
        """Return how likely sides that are alike would lie as far apart, in either direction."""
        if not self.error:
            return float(not self.middle)
        return 1 - within(abs(self.middle) / self.error, self.freedom)

    def interval(self, share: float) -> tuple[float, float]:
        """Return between which ratios the true one lies, as surely as this share."""
        reach = self.error * reach_of(share, self.freedom)
        return math.exp(self.middle - reach), math.exp(self.middle + reach)


def ratio_of_pairs(pairs: Sequence[tuple[float, float]]) -> LogRatio:
    """Return B to A of two or more pairs."""
    apart = [math.log(b / a) for a, b in pairs]
    return LogRatio(fmean(apart), math.sqrt(squares(apart) / (len(apart) - 1) / len(apart)), len(apart) - 1)


def ratio_of_sides(a: Sequence[float], b: Sequence[float]) -> LogRatio:
    """Return B to A of two sides of two or more samples, which may spread differently (Welch)."""
    logs = [logarithms(side) for side in (a, b)]
    parts = [squares(side) / (len(side) - 1) / len(side) for side in logs]
    total = sum(parts)
    freedom = len(a) + len(b) - 2
    if total:
        freedom = int(total**2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, logs, strict=True)))
    return LogRatio(fmean(logs[1]) - fmean(logs[0]), math.sqrt(total), max(1, freedom))


def within(t: float, freedom: int) -> float:
    """Return how likely a t of so many degrees of freedom lies between -t and t: the finite sums of its law."""
    if freedom >= _NORMAL_FROM:
        return 2 * NormalDist().cdf(t) - 1
    angle = math.atan(t / math.sqrt(freedom))
    cosine, odd = math.cos(angle), freedom % 2
    term = cosine if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(2 + odd, freedom - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


@lru_cache(maxsize=1024)
def reach_of(share: float, freedom: int) -> float:
    """Return the t between whose two signs this share lies."""
    low, high = 0.0, 1.0
    while within(high, freedom) < share:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < share else (low, middle)
    return high
