"""Figures that stand for many values: the sum, the mean, the middle, quantiles. None stands for no values. Pure."""

import math
import statistics
from collections.abc import Iterable, Sequence


def known_sum(values: Iterable[float | None]) -> float | None:
    """Return what the known ones add up to."""
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    return sum(numbers)


def mean(values: Sequence[float]) -> float | None:
    """Return the arithmetic mean."""
    if not values:
        return None
    return statistics.fmean(values)


def median(values: Sequence[float]) -> float | None:
    """Return the value in the middle."""
    if not values:
        return None
    return statistics.median(values)


def logarithms(values: Iterable[float]) -> list[float]:
    """Return the logarithm of each: what is twice as much lies as far above as half of it lies below."""
    return list(map(math.log, values))


def squares(values: Sequence[float]) -> float:
    """Return the sum of squared distances from the mean; of no value it is 0."""
    if not values:
        return 0.0
    middle = math.fsum(values) / len(values)
    return math.fsum((value - middle) ** 2 for value in values)


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value below which this share of ordered values lies, between two of them in proportion."""
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def as_number(value: object) -> float | None:
    """Return a value as a figure; what a training that diverged told last is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
