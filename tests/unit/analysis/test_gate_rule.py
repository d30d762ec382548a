"""The gate's rule, by simulation: how often it is wrong, how often it finds, and whether what it asks for is enough."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from scipy import stats

from benchmarks.gate_rule import Nights, keeps_its_word, simulate
from podwright.analysis.gate_rule import GateRule, judge_rounds
from podwright.analysis.rank_test import above_test, least_p
from podwright.analysis.student import ratio_of_sides, reach_of, within

STEADY = [60.0, 60.3, 59.8, 60.1, 60.2]


@pytest.mark.parametrize("spread", [0.01, 0.05])
def test_the_gate_keeps_its_word_in_short(spread: float) -> None:
    """Seeded, so that it says the same on every machine; by night benchmarks/simulations.py has the whole form."""
    assert keeps_its_word(simulate(spread, 40), slack=0.05)


@pytest.mark.parametrize(
    ("broken", "is_kept"),
    [
        ({}, True),
        ({"alarms": 101}, False),
        ({"found": 1899}, False),
        ({"found": 900, "spread": 0.05}, True),
        ({"clean_as_asked": 1799}, False),
    ],
)
def test_a_gate_that_breaks_its_word_is_told_from_one_that_keeps_it(broken: dict[str, float], is_kept: bool) -> None:
    kept = Nights(0.01, 2000, 100, 1900, 1900, 1900, 2000, 1800, 9)
    assert keeps_its_word(replace(kept, **broken)) is is_kept


def test_where_no_p_can_reach_the_bound_nothing_is_proven() -> None:
    slow = [3 * value for value in STEADY]
    assert judge_rounds([STEADY, slow], GateRule(cells=1)).verdict == "slower"
    row = judge_rounds([STEADY, slow], GateRule(cells=20))
    assert (row.verdict, row.smallest_seen) == ("not proven", None)
    assert row.needed is not None
    assert least_p(row.needed, row.needed) / 2 < 0.05 / 20


def test_the_first_slow_round_may_be_any_of_several() -> None:
    few = [[60.0, 61.0], [62.5, 60.2], [61.9, 63.0], [63.5, 62.9], [63.0, 64.0], [63.3, 63.4]]
    row = judge_rounds(few, GateRule())
    assert row.verdict == "slower"
    assert row.between[0] <= (row.since or 0) <= row.between[1]
    assert row.between[0] < row.between[1]


def test_the_round_that_is_named_is_one_that_it_may_be() -> None:
    """The surest cut and the likeliest are not always one; the second is then named as well."""
    chance = random.Random(3854)
    rounds = [[value * chance.lognormvariate(0, 0.12) for _ in range(5)] for value in (60, 60, 60, 84)]
    row = judge_rounds(rounds, GateRule())
    assert (row.since, row.between) == (2, (2, 3))


def test_a_single_sample_a_round_is_judged_too() -> None:
    rounds = [[60 + 0.1 * (number % 3)] for number in range(12)]
    assert judge_rounds(rounds, GateRule()).verdict == "not proven"
    assert judge_rounds([*rounds, *([66.0] for _ in range(6))], GateRule()).since == 12


def test_one_side_of_the_rank_test_is_that_of_scipy() -> None:
    a, b = [1.0, 4.0, 2.0, 8.0, 5.5], [3.0, 9.0, 7.0]
    expected = stats.mannwhitneyu(b, a, alternative="greater", method="exact").pvalue
    assert above_test(a, b) == pytest.approx(expected)
    many = [float(value) for value in range(200)]
    assert above_test(many, [500.0, 501.0, 502.0]) == pytest.approx(least_p(200, 3) / 2)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 30, 250])
def test_student_is_that_of_scipy(freedom: int) -> None:
    for t in (0.2, 1.0, 2.5, 6.0):
        assert within(t, freedom) == pytest.approx(1 - 2 * stats.t.sf(t, freedom), abs=2e-3 if freedom > 200 else 1e-9)
    assert reach_of(0.95, freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=6e-3 if freedom > 200 else 1e-6)


def test_welch_is_that_of_scipy() -> None:
    import math

    a, b = [60.0, 61.0, 59.0, 62.0], [63.0, 61.0, 64.0, 66.0, 60.0]
    logs = [[math.log(value) for value in side] for side in (a, b)]
    expected = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    ours = ratio_of_sides(a, b)
    assert ours.middle / ours.error == pytest.approx(expected.statistic)
    assert ours.freedom == int(expected.df)
    assert ours.p == pytest.approx(expected.pvalue, abs=0.005)
