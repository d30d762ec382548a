"""Figures that stand for many values."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.analysis.statistics import mean, median, quantile

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)


def test_no_values_have_no_figure() -> None:
    assert (mean([]), median([]), quantile([], 0.5)) == (None, None, None)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 10.0), (0.25, 12.5), (0.5, 15.0), (0.95, 19.5), (1.0, 20.0)])
def test_a_quantile_lies_between_two_values_in_proportion(share: float, expected: float) -> None:
    assert quantile([10.0, 20.0], share) == pytest.approx(expected)


@given(VALUES)
def test_the_middle_quantile_is_the_median(values: list[float]) -> None:
    assert quantile(sorted(values), 0.5) == pytest.approx(statistics.median(values), abs=1e-6)


@given(VALUES, st.floats(0, 1), st.floats(0, 1))
def test_quantiles_grow_with_their_share(values: list[float], first: float, second: float) -> None:
    low, high = sorted((first, second))
    ordered = sorted(values)
    below, above = quantile(ordered, low), quantile(ordered, high)
    assert below is not None
    assert above is not None
    assert ordered[0] <= below <= above + 1e-6 <= ordered[-1] + 2e-6
