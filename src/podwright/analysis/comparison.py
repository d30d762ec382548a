"""Whether B takes as long as A: one rule with three answers, for runs, suites and bare numbers. Pure.

`same`: the 90 % interval of the ratio of medians lies within the margin. `different`: not the same, the exact
Mann-Whitney test has p < 0.05, and the 95 % interval does not hold 1. Everything else is `not proven`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean, median
from typing import Any

from podwright.analysis.bootstrap import Interval, interval_of, ratio_draws
from podwright.analysis.rank_test import rank_test

SAME, DIFFERENT, NOT_PROVEN = "same", "different", "not proven"
MARGIN = 0.03
LEAST, MIN_DIFFERENT = 2, 4
"""Of how few samples nothing is said at all, and of how few never that they differ: 3 and 3 cannot reach p < 0.05."""
_P = 0.05
_MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""The error of a median to that of a mean, where values spread as the normal distribution has it."""
_ERRORS = 3.7
"""How many errors of the ratio must fit into the margin for the rule to decide nine times of ten; by simulation."""
_SURE = 0.8
"""How sure it shall be that the true spread is no greater than the one that `needed` is computed with."""


@dataclass(frozen=True)
class PairComparison:
    """What the samples of two sides say; what too few samples leave open is None."""

    ratio: float | None
    interval: Interval | None
    n: tuple[int, int]
    p: float | None
    verdict: str
    margin: float
    needed: int | None
    """Samples a side with which the rule decides nine times of ten, if the sides are the same or a margin apart."""

    @property
    def is_decided(self) -> bool:
        """Tell whether the rule came to an answer."""
        return self.verdict != NOT_PROVEN

    def as_json(self) -> dict[str, Any]:
        """Return the document of `compare`, but for the causes."""
        return asdict(self)


def compare(a: Sequence[float], b: Sequence[float], margin: float = MARGIN) -> PairComparison:
    """Compare two sets of positive samples; either may be empty."""
    n = len(a), len(b)
    ratio = None
    if a and b:
        ratio = median(b) / median(a)
    needed = needed_samples(a, b, margin)
    if min(n) < LEAST:
        return PairComparison(ratio, None, n, None, NOT_PROVEN, margin, needed)
    draws = ratio_draws(a, b)
    interval, p = interval_of(draws, 0.95), rank_test(a, b)
    verdict = NOT_PROVEN
    if _lies_within(interval_of(draws, 0.90), margin):
        verdict = SAME
    elif min(n) >= MIN_DIFFERENT and p < _P and not interval[0] <= 1 <= interval[1]:
        verdict = DIFFERENT
    return PairComparison(ratio, interval, n, p, verdict, margin, needed)


def _lies_within(interval: Interval, margin: float) -> bool:
    return 1 - margin <= interval[0] and interval[1] <= 1 + margin


def needed_samples(a: Sequence[float], b: Sequence[float], margin: float) -> int | None:
    """Return how many samples a side would decide; None where no side has two, so that nobody knows their spread.

    It depends on the spread alone and not on the ratio that was seen: of two sides that are the same, that ratio is
    chance. Few samples tell their spread badly, so the greatest that is likely is taken.
    """
    freedom = sum(len(side) - 1 for side in (a, b) if side)
    if freedom < 1:
        return None
    spread = math.sqrt(sum(_squares(side) for side in (a, b) if side) / freedom) * _greatest_likely(freedom)
    reach = _ERRORS * _MEDIAN_ERROR * spread / math.log1p(margin)
    return max(MIN_DIFFERENT, math.ceil(2 * reach**2))


def _squares(side: Sequence[float]) -> float:
    """Return the squared distances of a side's logarithms from their mean: spread as a share of the value."""
    logs = [math.log(value) for value in side]
    middle = fmean(logs)
    return sum((log - middle) ** 2 for log in logs)


def _greatest_likely(freedom: int) -> float:
    """Return by how much a spread of so many degrees of freedom may be too small: chi-square by Wilson and Hilferty."""
    step = 2 / (9 * freedom)
    root = 1 - step + NormalDist().inv_cdf(1 - _SURE) * math.sqrt(step)
    return math.sqrt(1 / max(root, 0.1) ** 3)
