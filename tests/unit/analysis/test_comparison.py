"""The rule of `compare`: its table, its law, and what it answers of chance."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from benchmarks.compare_rule import COUNTS, Simulated, keeps_its_word
from podwright.analysis.bootstrap import DRAWS, median_draws, median_interval, ratio_draws
from podwright.analysis.comparison import MARGIN, compare, needed_samples
from podwright.analysis.rank_test import rank_test

STEADY = [100.0, 100.2, 99.9, 100.1, 100.0, 99.8, 100.3, 99.9]
TIMES = st.lists(st.floats(1, 1000), min_size=2, max_size=12)


def times(chance: random.Random, count: int, spread: float, middle: float = 60.0) -> list[float]:
    return [middle * chance.lognormvariate(0, spread) for _ in range(count)]


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (STEADY, [value * 1.001 for value in STEADY], "same"),
        (STEADY, [value * 1.05 for value in STEADY], "different"),
        # Proven different from 1, and yet within the margin: same.
        (STEADY, [value * 1.01 for value in STEADY], "same"),
        ([100, 120, 90, 140], [105, 95, 130, 110], "not proven"),
        # Far apart, and too few to say so: three a side cannot reach p < 0.05.
        ([100, 101, 102], [200, 201, 202], "not proven"),
        ([100, 101, 102, 103], [200, 201, 202, 203], "different"),
        ([100], [100], "not proven"),
        ([], [100, 101], "not proven"),
    ],
)
def test_verdicts(a: list[float], b: list[float], verdict: str) -> None:
    assert compare(a, b).verdict == verdict


def test_of_one_run_there_is_a_ratio_and_nothing_else() -> None:
    document = compare([100.0], [106.13]).as_json()
    assert document == {
        "ratio": pytest.approx(1.0613),
        "interval": None,
        "n": (1, 1),
        "p": None,
        "verdict": "not proven",
        "margin": 0.03,
        "needed": None,
        "method": "unpaired",
        "smallest_seen": None,
    }


def test_of_several_sides_more_samples_are_asked_for() -> None:
    """Four a side cannot reach p < 0.025, however far they are apart; `needed` does not say that they can."""
    a, b = [60.0, 60.1, 61.0, 60.4], [90.0, 90.1, 91.0, 90.4]
    assert compare(a, b).verdict == "different"
    row = compare(a, b, tests=2)
    assert (row.verdict, row.needed) == ("not proven", 5)
    assert compare([*a, 60.2], [*b, 90.2], tests=2).verdict == "different"


def test_the_same_samples_give_the_same_answer() -> None:
    assert compare(STEADY, STEADY[::-1]) == compare(STEADY, STEADY)


def test_a_wider_margin_needs_fewer_runs() -> None:
    chance = random.Random(3)
    a, b = times(chance, 6, 0.02), times(chance, 6, 0.02)
    needed = [needed_samples(a, b, margin) or 0 for margin in (0.01, 0.03, 0.1)]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] > 6 * needed[1]


@given(TIMES, TIMES)
def test_swapping_the_sides_turns_the_ratio_and_keeps_p(a: list[float], b: list[float]) -> None:
    forward, back = compare(a, b), compare(b, a)
    assert forward.ratio is not None
    assert back.ratio == pytest.approx(1 / forward.ratio)
    assert forward.p == pytest.approx(back.p)
    assert forward.needed == pytest.approx(back.needed)


@given(TIMES, TIMES, st.floats(0.01, 100))
def test_the_unit_of_time_does_not_matter(a: list[float], b: list[float], unit: float) -> None:
    ours, theirs = compare(a, b), compare([value * unit for value in a], [value * unit for value in b])
    assert theirs.interval == pytest.approx(ours.interval)
    assert theirs.ratio == pytest.approx(ours.ratio)


@given(st.lists(st.integers(1, 10**6), min_size=4, max_size=40, unique=True), st.data())
def test_p_is_that_of_scipy(values: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(values) - 1))
    a, b = values[:cut], values[cut:]
    assert rank_test(a, b) == pytest.approx(mannwhitneyu(a, b, method="exact").pvalue)


def test_p_with_values_that_are_equal_counts_every_order() -> None:
    # Of the 10 ways to choose 2 of {1, 1, 2, 2, 2}, one has both ones: 2 * 1 / 10.
    assert rank_test([1, 1], [2, 2, 2]) == pytest.approx(0.2)
    assert rank_test([5, 5, 5], [5, 5]) == 1.0


def test_beyond_the_exact_sizes_p_goes_on_smoothly() -> None:
    chance = random.Random(5)
    a, b = times(chance, 70, 0.02), times(chance, 70, 0.02, 60.3)
    assert rank_test(a, b) == pytest.approx(mannwhitneyu(a, b, method="asymptotic").pvalue)
    assert rank_test([1.0] * 80, [1.0] * 80) == 1.0


@pytest.mark.parametrize("count", [5, 12])
def test_drawn_medians_are_those_of_resamples(count: int) -> None:
    chance = random.Random(11)
    values = times(chance, count, 0.1)
    drawn = sorted(median_draws(values))
    resampled = sorted(median(chance.choices(values, k=count)) for _ in range(DRAWS))
    for share in (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975):
        place = int(share * DRAWS)
        near = resampled[max(0, place - 200) : place + 200]
        assert near[0] <= drawn[place] <= near[-1]


def test_the_interval_of_one_set() -> None:
    low, high = median_interval(STEADY) or (0, 0)
    assert min(STEADY) <= low <= median(STEADY) <= high <= max(STEADY)
    assert median_interval([1.0]) is None


def answers(pairs: int, count: int, spread: float) -> list[str]:
    chance = random.Random(f"{pairs} {count} {spread}")
    sides = ((times(chance, count, spread), times(chance, count, spread)) for _ in range(pairs))
    return [compare(a, b).verdict for a, b in sides]


@pytest.mark.parametrize("count", [5, 12, 30])
def test_chance_is_seldom_called_different(count: int) -> None:
    """The short form; by night benchmarks/simulations.py has 2,000 pairs for each size."""
    assert answers(120, count, 0.03).count("different") <= 0.11 * 120


def test_runs_as_many_as_needed_prove_what_is_the_same() -> None:
    chance = random.Random(17)
    pilots = [(times(chance, 5, 0.015), times(chance, 5, 0.015)) for _ in range(25)]
    needs = [needed_samples(a, b, MARGIN) or 0 for a, b in pilots]
    verdicts = [compare(times(chance, need, 0.015), times(chance, need, 0.015)).verdict for need in needs]
    assert verdicts.count("same") >= 0.85 * len(verdicts)


def simulated(count: int, enough: int, same: int) -> Simulated:
    """A row in which so many pairs had enough runs, and so many of those were called the same."""
    return Simulated(count, 0.01, 30, 1000, enough, same, 100, 95)


def test_a_rule_that_breaks_its_word_is_told_from_one_that_keeps_it() -> None:
    good = [simulated(count, 200, 190) for count in COUNTS]
    assert keeps_its_word(good)
    assert keeps_its_word([*good, simulated(5, 10, 5)]), "of few pairs a share says nothing"
    assert not keeps_its_word([*good, simulated(5, 60, 50)])
    assert not keeps_its_word([*good, replace(good[0], different=70)])
    assert not keeps_its_word([*good, replace(good[0], same_of_renewed=80)])


def test_ratios_come_in_order() -> None:
    draws = ratio_draws(STEADY, STEADY)
    assert draws == sorted(draws)
