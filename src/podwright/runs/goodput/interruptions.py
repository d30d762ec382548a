"""How often a run was interrupted, and the mean time to the next one. Pure.

Interruptions are taken to come by chance at a steady rate (Poisson). Of fewer than three nothing is said.
"""

from __future__ import annotations

from math import exp, lgamma, log

MIN_INTERRUPTIONS = 3
CONFIDENCE = 0.9
_HALVINGS = 80


def mean_time(running_s: float, count: int) -> tuple[float, tuple[float, float]] | None:
    """Return the mean time between interruptions with its 90 % interval; None where there were too few."""
    if count < MIN_INTERRUPTIONS or running_s <= 0:
        return None
    outside = (1 - CONFIDENCE) / 2
    fewest = _mean_for(count - 1, 1 - outside)
    most = _mean_for(count, outside)
    return running_s / count, (running_s / most, running_s / fewest)


def _mean_for(count: int, chance: float) -> float:
    """Return the mean of the Poisson law under which at most `count` come with this chance."""
    low, high = 0.0, 10.0 * (count + 10)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(count, middle) > chance:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _at_most(count: int, mean: float) -> float:
    if mean <= 0:
        return 1.0
    return sum(exp(k * log(mean) - mean - lgamma(k + 1)) for k in range(count + 1))
