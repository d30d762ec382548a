"""Runs in turns are told from runs in blocks, and compared pair by pair."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks.proof_families import FAMILIES, Drift, Simulated, Word, drifting, until_proven, verdicts
from podwright.analysis.comparison import compare, compare_pairs, looks, outliers
from podwright.analysis.turns import in_blocks, pairs_in_turn


@pytest.mark.parametrize(
    ("order", "pairs"),
    [
        ("ABBAABBA", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("ABABABAB", None),  # B is always later: what drifts would count against it
        ("AAAABBBB", None),
        ("ABBAABB", None),
        ("ABBA", None),
        ("ABBAABBAAB", [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]),
    ],
)
def test_turns(order: str, pairs: list[tuple[int, int]] | None) -> None:
    times = [[float(at) for at, letter in enumerate(order) if letter == side] for side in "AB"]
    assert pairs_in_turn(*times) == pairs


def test_blocks() -> None:
    assert in_blocks([1.0, 2.0], [3.0, 4.0])
    assert in_blocks([5.0], [3.0, 4.0])
    assert not in_blocks([1.0, 4.0], [3.0])
    assert not in_blocks([], [3.0])


def test_drift_that_takes_blocks_in_does_not_take_pairs_in() -> None:
    rows = drifting(8, 60)
    assert verdicts(rows["turns"], "different") <= 3
    assert verdicts(rows["blocks"], "different") >= 50
    assert verdicts(drifting(8, 60, 1.05)["turns"], "different") >= 50


def test_nothing_is_proven_from_two_or_three() -> None:
    assert compare([60.0, 60.1], [61.7, 61.6]).verdict == "not proven"
    assert compare([60.0, 60.1, 60.0], [60.0, 60.1, 60.0]).verdict == "not proven"
    assert compare_pairs([(60.0, 60.1), (60.1, 60.0), (60.0, 60.0)]).verdict == "not proven"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("start", [1, 8])
def test_looking_again_and_again_is_paid_for(family: str, start: int) -> None:
    assert until_proven(family, 200, start) <= 0.05


def test_families_that_break_their_word_are_told_from_those_that_keep_it() -> None:
    words = [Word(family, 4, 0.95, false, 0.02, 1.0) for family in FAMILIES for false in (0.06, 0.03)]
    drifts = [Drift("blocks", 4, 0.8, 0.0, 1.0), Drift("turns", 4, 0.0, 0.02, 1.0)]
    kept = Simulated(400, words, drifts, dict.fromkeys(FAMILIES, (0.01, 0.05)))
    assert kept.keeps_its_word()
    assert not replace(kept, words=[replace(row, false=0.06) for row in words]).keeps_its_word()
    assert not replace(kept, drifts=[replace(row, order="turns") for row in drifts]).keeps_its_word()
    assert not replace(kept, until={"even": (0.01, 0.08)}).keeps_its_word()


def test_the_looks_are_few_and_known_before() -> None:
    assert looks(1, 30) == [5, 10, 20, 30]
    assert looks(12, 30) == [12, 24, 30]
    assert looks(40, 30) == [40]


def test_outliers_are_named() -> None:
    chance = random.Random(1)
    steady = [60 * chance.lognormvariate(0, 0.01) for _ in range(8)]
    assert outliers(steady) == []
    assert outliers([*steady, 90.0]) == [90.0]
    assert outliers([1.0, 9.0]) == []


def test_a_difference_that_could_not_have_been_seen_is_none() -> None:
    assert compare([60.0, 61.0, 59.0], [60.0, 61.0, 59.5]).smallest_seen is None
    assert 0 < (compare([60.0, 61.0, 59.0, 60.2], [60.0, 61.0, 59.5, 60.4]).smallest_seen or 0) < 0.2
