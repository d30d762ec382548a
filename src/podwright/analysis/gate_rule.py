"""Whether a measurement that is repeated round after round became worse, and in which round. Pure.

`slower`: of all ways to cut the rounds in two, one has the later part worse by more than the margin, and the exact rank
test leaves less to chance than each of so many looks may have. `clean`: the newest round is shown to be no worse than
the rounds before it by more than the margin. Everything else is `not proven`, and so is a first round.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import NormalDist, median

from podwright.analysis.comparison import MARGIN, MEDIAN_ERROR, MIN_DECIDED, P, greatest_likely
from podwright.analysis.rank_test import above_test, least_p
from podwright.analysis.statistics import logarithms, squares
from podwright.analysis.student import ratio_of_sides, reach_of

CLEAN, SLOWER, NOT_PROVEN = "clean", "slower", "not proven"
NIGHTS = 0.9
"""Of how many nights equal builds shall be clean with the repeats that the gate asks for."""
_COUNTS = range(MIN_DECIDED, 2000)
_CUTS = 30
"""Of so many of the latest rounds each may be the first that was worse; older ones stand for the level before."""
_PLAUSIBLE = 5.99
"""By how much twice the likelihood of a cut may be less than the best one's: chi-square of two degrees at 95 %."""
Samples = Sequence[float]


@dataclass(frozen=True)
class GateRule:
    """What is worse, by how much it may be, and among how many tests the chance of one false alarm is shared."""

    lower_is_better: bool = True
    margin: float = MARGIN
    cells: int = 1
    looks: int = 1

    @property
    def p(self) -> float:
        """Return how little may be left to chance, were there one cut."""
        return P / (self.cells * self.looks)

    @property
    def sure(self) -> float:
        """Return the share of the interval beyond whose upper end no more than P lies, all looks together."""
        return 1 - 2 * P / self.looks


@dataclass(frozen=True)
class CellJudged:
    """What the rule says of a cell's rounds; they are named by their place."""

    verdict: str
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    n: tuple[int, int] = (0, 0)
    since: int | None = None
    between: tuple[int, int] = (0, 0)
    """The first round may lie anywhere from one of these to the other."""
    needed: int | None = None
    smallest_seen: float | None = None


def judge_rounds(rounds: Sequence[Samples], rule: GateRule) -> CellJudged:
    """Judge the newest of a cell's rounds by those before it, oldest first."""
    if len(rounds) < 2:
        needed = _needed(rounds, 0, rule) if rounds else None
        return CellJudged(NOT_PROVEN, n=(0, len(rounds[0]) if rounds else 0), needed=needed)
    places = _places(rounds)
    cuts = [_cut(rounds, at, rule) for at in places]
    proven = [cut for cut in cuts if cut is not None and cut[1] < rule.p / len(places)]
    if proven:
        at, p = min(proven, key=lambda cut: cut[1])
        row = _row(rounds, at, p, SLOWER, rule)
        first, last = _plausible(rounds)
        return CellJudged(**{**vars(row), "since": at, "between": (min(first, at), max(at, last))})
    before, newest = _parts(rounds, len(rounds) - 1)
    p = above_test(*_by_cost((before, newest), rule))
    return _row(rounds, len(rounds) - 1, p, CLEAN if _is_no_worse(before, newest, rule) else NOT_PROVEN, rule)


def _places(rounds: Sequence[Samples]) -> range:
    return range(max(1, len(rounds) - _CUTS), len(rounds))


def _parts(rounds: Sequence[Samples], at: int) -> tuple[list[float], list[float]]:
    return list(chain.from_iterable(rounds[:at])), list(chain.from_iterable(rounds[at:]))


def _by_cost(parts: Sequence[Samples], rule: GateRule) -> list[list[float]]:
    """Return the same with what is worse as the greater."""
    if rule.lower_is_better:
        return list(map(list, parts))
    return [list(map(_inverse, part)) for part in parts]


def _inverse(value: float) -> float:
    return 1 / value


def _cut(rounds: Sequence[Samples], at: int, rule: GateRule) -> tuple[int, float] | None:
    """Return p of a cut behind which all is worse by more than the margin."""
    before, after = _by_cost(_parts(rounds, at), rule)
    if median(after) <= median(before) * (1 + rule.margin):
        return None
    return at, above_test(before, after)


def _is_no_worse(before: Samples, newest: Samples, rule: GateRule) -> bool:
    if min(len(before), len(newest)) < MIN_DECIDED:
        return False
    return ratio_of_sides(*_by_cost((before, newest), rule)).interval(rule.sure)[1] <= 1 + rule.margin


def _row(rounds: Sequence[Samples], at: int, p: float, verdict: str, rule: GateRule) -> CellJudged:
    before, after = _parts(rounds, at)
    interval = smallest = None
    if min(len(before), len(after)) > 1:
        logs = ratio_of_sides(before, after)
        interval = logs.interval(1 - P)
        if least_p(len(before), len(after)) / 2 < rule.p / len(_places(rounds)):
            reach = reach_of(1 - 2 * rule.p / len(_places(rounds)), logs.freedom) + NormalDist().inv_cdf(NIGHTS)
            smallest = max(rule.margin, math.expm1(MEDIAN_ERROR * logs.error * reach))
    needed = None if verdict == SLOWER else _needed(rounds, len(before), rule)
    n = len(before), len(after)
    return CellJudged(verdict, median(after) / median(before), interval, p, n, needed=needed, smallest_seen=smallest)


def _needed(rounds: Sequence[Samples], before: int, rule: GateRule) -> int | None:
    """Return with how many repeats equal builds would be clean in nine nights of ten; None where no spread is known.

    Where fewer would do if the rounds before had as many, it is those: a few more rounds bring them.
    """
    freedom = sum(len(samples) - 1 for samples in rounds)
    own = rounds
    if freedom < 1:
        own, freedom = [list(chain.from_iterable(rounds))], len(rounds) - 1
    if freedom < 1:
        return None
    apart = sum(squares(logarithms(samples)) for samples in own)
    spread = math.sqrt(apart / freedom) * greatest_likely(freedom)
    least = rule.p / max(1, len(rounds) - 1)

    def is_enough(count: int, beside: int) -> bool:
        return _decides(spread, beside, count, rule) and least_p(beside, count) / 2 < least

    own_round = bisect_left(_COUNTS, True, key=lambda count: is_enough(count, before))
    all_rounds = bisect_left(_COUNTS, True, key=lambda count: is_enough(count, count))
    place = min(own_round, all_rounds)
    return _COUNTS[place] if place < len(_COUNTS) else None


def _decides(spread: float, before: int, count: int, rule: GateRule) -> bool:
    if not before:
        return False
    power = NIGHTS ** (1 / rule.cells)
    error = spread * math.sqrt(1 / before + 1 / count)
    freedom = min(before, count) - 1 if before > 1 else 1
    return error * (reach_of(rule.sure, freedom) + NormalDist().inv_cdf(power)) <= math.log1p(rule.margin)


def _plausible(rounds: Sequence[Samples]) -> tuple[int, int]:
    """Return the first and the last cut that explains the samples nearly as well as the best one."""
    logs = list(map(logarithms, rounds))
    count = sum(map(len, logs))
    misfits = {at: sum(map(squares, _parts(logs, at))) for at in _places(rounds)}
    least = min(misfits.values()) or 1e-300
    near = [at for at, misfit in misfits.items() if count * math.log((misfit or 1e-300) / least) <= _PLAUSIBLE]
    return near[0], near[-1]
