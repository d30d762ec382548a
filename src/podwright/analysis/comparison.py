"""Whether B takes as long as A: one rule with three answers, for runs, suites and bare numbers. Pure.

`same`: the 90 % interval of the ratio lies within the margin. `different`: not the same, p < 0.05, and the 95 %
interval does not hold 1. Everything else is `not proven`, and so is whatever rests on fewer than four samples.

Samples that were made in turns are compared pair by pair, by Student's t on the logarithms of their ratios. All others
by the ratio of medians with its bootstrap, which has to agree with Welch's interval before anything is called the same,
and by the exact Mann-Whitney test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist, median
from typing import Any

from podwright.analysis.bootstrap import Interval, interval_of, ratio_draws
from podwright.analysis.rank_test import least_p, rank_test
from podwright.analysis.statistics import logarithms, squares
from podwright.analysis.student import LogRatio, ratio_of_pairs, ratio_of_sides, reach_of

SAME, DIFFERENT, NOT_PROVEN = "same", "different", "not proven"
PAIRED, UNPAIRED = "paired", "unpaired"
MARGIN = 0.03
LEAST, MIN_DECIDED = 2, 4
"""Of how few samples nothing is said at all, and of how few never that they are the same or differ."""
P = 0.05
MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""The error of a median to that of a mean, where values spread as the normal distribution has it."""
_ERRORS = 3.7
"""How many errors of the ratio must fit into the margin for the rule to decide nine times of ten; by simulation."""
_SURE = 0.8
"""How sure it shall be that the true spread is no greater than the one that `needed` is computed with."""
_SEEN = 0.9
"""How often a difference would be found that is called the smallest one."""
_OUTLYING = 5.0
"""How many median deviations from the median a sample lies that is named; it counts all the same."""


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
    method: str = UNPAIRED
    smallest_seen: float | None = None
    """The smallest difference, as a share, that these samples would have shown nine times of ten."""

    @property
    def is_decided(self) -> bool:
        """Tell whether the rule came to an answer."""
        return self.verdict != NOT_PROVEN

    def as_json(self) -> dict[str, Any]:
        """Return the document of `compare`, but for the causes."""
        return asdict(self)


def compare(a: Sequence[float], b: Sequence[float], margin: float = MARGIN, tests: int = 1) -> PairComparison:
    """Compare two sets of positive samples; either may be empty. Of several tests each must be the surer."""
    n = len(a), len(b)
    ratio = median(b) / median(a) if a and b else None
    needed = needed_samples(a, b, margin)
    if needed is not None:
        needed = max(needed, least_decided(tests))
    row = PairComparison(ratio, None, n, None, NOT_PROVEN, margin, needed)
    if min(n) < LEAST:
        return row
    draws, logs, p = ratio_draws(a, b), ratio_of_sides(a, b), rank_test(a, b)
    sure = 1 - 2 * P / tests
    is_same = _lies_within(interval_of(draws, sure), margin) and _lies_within(logs.interval(sure), margin)
    row = replace(row, interval=interval_of(draws, 1 - P), p=p, smallest_seen=_smallest_seen(a, b, tests))
    return _judged(row, is_same, interval_of(draws, 1 - P / tests), tests)


def compare_pairs(pairs: Sequence[tuple[float, float]], margin: float = MARGIN, tests: int = 1) -> PairComparison:
    """Compare samples that were made in turns, pair by pair; there are at least two."""
    logs, n = ratio_of_pairs(pairs), (len(pairs), len(pairs))
    needed = _needed(logs.error * math.sqrt(len(pairs)), logs.freedom, margin, errors=1.0)
    seen = math.expm1(logs.error * (reach_of(1 - P / tests, logs.freedom) + reach_of(2 * _SEEN - 1, logs.freedom)))
    ratio, interval = math.exp(logs.middle), logs.interval(1 - P)
    row = PairComparison(ratio, interval, n, logs.p, NOT_PROVEN, margin, needed, PAIRED, seen)
    return _judged(row, _lies_within(logs.interval(1 - 2 * P / tests), margin), logs.interval(1 - P / tests), tests)


def _judged(row: PairComparison, is_same: bool, surely: Interval, tests: int) -> PairComparison:
    if min(row.n) < MIN_DECIDED:
        return row
    if is_same:
        return replace(row, verdict=SAME, needed=None)
    if row.p is not None and row.p < P / tests and not surely[0] <= 1 <= surely[1]:
        return replace(row, verdict=DIFFERENT, needed=None)
    return row


def _lies_within(interval: Interval, margin: float) -> bool:
    return 1 - margin <= interval[0] and interval[1] <= 1 + margin


def _smallest_seen(a: Sequence[float], b: Sequence[float], tests: int) -> float | None:
    """Return the smallest difference that would have been seen; None where no p of so few samples is small enough."""
    if least_p(len(a), len(b)) >= P / tests:
        return None
    logs: LogRatio = ratio_of_sides(a, b)
    reach = reach_of(1 - P / tests, logs.freedom) + reach_of(2 * _SEEN - 1, logs.freedom)
    return math.expm1(MEDIAN_ERROR * logs.error * reach)


def outliers(samples: Sequence[float]) -> list[float]:
    """Return the samples that lie far from the others; of fewer than four nobody can tell."""
    if len(samples) < MIN_DECIDED:
        return []
    middle = median(samples)
    usual = median(abs(value - middle) for value in samples)
    return [value for value in samples if usual and abs(value - middle) > _OUTLYING * usual]


def needed_samples(a: Sequence[float], b: Sequence[float], margin: float) -> int | None:
    """Return how many samples a side would decide; None where no side has two, so that nobody knows their spread.

    It depends on the spread alone and not on the ratio that was seen: of two sides that are the same, that ratio is
    chance. Few samples tell their spread badly, so the greatest that is likely is taken.
    """
    freedom = sum(len(side) - 1 for side in (a, b) if side)
    if freedom < 1:
        return None
    spread = math.sqrt(sum(squares(logarithms(side)) for side in (a, b)) / freedom)
    return _needed(spread, freedom, margin, errors=math.sqrt(2) * MEDIAN_ERROR)


def least_decided(tests: int) -> int:
    """Return of how few samples a side the rank test can be sure enough, where it is one of several."""
    return next(count for count in itertools.count(MIN_DECIDED) if least_p(count, count) < P / tests)


def _needed(spread: float, freedom: int, margin: float, errors: float) -> int:
    reach = _ERRORS * errors * spread * greatest_likely(freedom) / math.log1p(margin)
    return max(MIN_DECIDED, math.ceil(reach**2))


def greatest_likely(freedom: int) -> float:
    """Return by how much a spread of so many degrees of freedom may be too small: chi-square by Wilson and Hilferty."""
    step = 2 / (9 * freedom)
    root = 1 - step + NormalDist().inv_cdf(1 - _SURE) * math.sqrt(step)
    return math.sqrt(1 / max(root, 0.1) ** 3)


def looks(start: int, most: int) -> list[int]:
    """Return after how many samples a side is looked at; whoever looks so often has to be the surer each time.

    Looking after every run calls equal sides different in one case of six. These few looks, decided on before the
    first, share the chance of an error: each has its part of it (Bonferroni), whatever the earlier ones showed.
    """
    counts = [max(start, MIN_DECIDED + 1)]
    while counts[-1] < most:
        counts.append(min(most, 2 * counts[-1]))
    return counts
