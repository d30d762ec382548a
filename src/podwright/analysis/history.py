"""Whether a measurement that is repeated round after round became slower, and in which round. Pure.

Each round is held against the level before it. A change that takes the data of several rounds to be proven is found by
splitting the history in two where both halves differ most. Since many comparisons are made, each must be the surer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from podwright.analysis.comparison import DIFFERENT, MARGIN, PairComparison, compare

_P = 0.05
Samples = Sequence[float]


@dataclass(frozen=True)
class Slowdown:
    """The first round that was slower, the first that was as before again, and how sure it is."""

    since: int
    until: int | None
    comparison: PairComparison


def slowdowns(rounds: Sequence[Samples], cells: int = 1, margin: float = MARGIN) -> list[Slowdown]:
    """Return what became slower by more than the margin; `cells` is how many such histories are judged together."""
    judge = _Judge(_P / max(1, 2 * cells * (len(rounds) - 1)), margin)
    return _one_by_one(rounds, judge) or _by_halves(rounds, judge)


@dataclass(frozen=True)
class _Judge:
    p: float
    margin: float

    def change(self, before: Samples, after: Samples) -> PairComparison | None:
        """Return the comparison where it proves a change that matters."""
        row = compare(before, after, self.margin)
        is_proven = row.verdict == DIFFERENT and row.p is not None and row.p < self.p
        if row.ratio is None or not is_proven or abs(row.ratio - 1) <= self.margin:
            return None
        return row

    def is_faster(self, before: Samples, after: Samples) -> bool:
        """Tell whether it became faster; a single proof is enough, since nobody is blamed."""
        row = compare(before, after, self.margin)
        return row.verdict == DIFFERENT and row.ratio is not None and row.ratio < 1


def _one_by_one(rounds: Sequence[Samples], judge: _Judge) -> list[Slowdown]:
    listed: list[Slowdown] = []
    good: list[float] = list(rounds[0]) if rounds else []
    slow: list[float] = []
    for number, samples in enumerate(rounds[1:], start=1):
        if slow and judge.is_faster(slow, samples):
            listed[-1] = Slowdown(listed[-1].since, number, listed[-1].comparison)
            slow = []
        level = slow or good
        change = judge.change(level, samples)
        if change is not None and (change.ratio or 1) > 1:
            listed.append(Slowdown(number, None, change))
            slow = list(samples)
        elif change is not None:
            good, slow = list(samples), []
        else:
            level += samples
    return listed


def _by_halves(rounds: Sequence[Samples], judge: _Judge) -> list[Slowdown]:
    changes = []
    for number in range(1, len(rounds)):
        before, after = (list(chain.from_iterable(part)) for part in (rounds[:number], rounds[number:]))
        change = judge.change(before, after)
        if change is not None and (change.ratio or 1) > 1:
            changes.append(Slowdown(number, None, change))
    surest = sorted(changes, key=lambda change: change.comparison.p or 1.0)
    return surest[:1]
