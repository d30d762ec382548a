"""Nodes that failures have in common: the chance is held against drawing, and what is sure is sure."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.analysis.lemons import LemonNode, lemons

NODES = [f"n{number}" for number in range(20)]


def test_a_node_that_is_in_every_failure_stands_first() -> None:
    failures = [{"n7", f"n{number}"} for number in range(6)]
    found = lemons(failures, 20)
    assert found[0].host == "n7"
    assert (found[0].failures, found[0].of) == (6, 6)
    assert found[0].odds == pytest.approx(0.1**6)
    assert found[1].odds > 0.4


def test_runs_on_all_nodes_say_nothing_of_any() -> None:
    assert [lemon.odds for lemon in lemons([set(NODES)] * 9, 20)] == [1.0] * 20
    assert lemons([], 20) == []
    assert lemons([{"n1"}], 0) == [LemonNode("n1", 1, 1, 1.0)]


def test_the_chance_is_that_of_drawing() -> None:
    """Twelve failures of 1 to 8 of 20 nodes; how often a node that is no lemon has at least as many."""
    draw = random.Random(7)
    sizes = [draw.randint(1, 8) for _ in range(12)]
    failures = [set(draw.sample(NODES, size)) for size in sizes]
    for lemon in lemons(failures, 20):
        tries = 4000
        hits = sum(sum(draw.random() < size / 20 for size in sizes) >= lemon.failures for _ in range(tries))
        assert hits / tries == pytest.approx(lemon.odds, abs=0.04)


@given(st.lists(st.sets(st.sampled_from(NODES), min_size=1), max_size=12))
def test_more_failures_are_never_likelier(failures: list[set[str]]) -> None:
    found = lemons(failures, 20)
    assert all(0 <= lemon.odds <= 1 and 1 <= lemon.failures <= lemon.of for lemon in found)
    counts = [lemon.failures for lemon in found]
    assert counts == sorted(counts, reverse=True)
