"""Readings made fit to be drawn."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.analysis import series
from podwright.analysis.data import Track

VALUES = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300)


def track(*pairs: tuple[float, float]) -> Track:
    return Track(array("d", (t for t, _ in pairs)), array("d", (v for _, v in pairs)))


def every_second(values: list[float]) -> Track:
    return track(*enumerate(values))


def test_a_counter_becomes_a_rate_and_its_fresh_start_is_left_out() -> None:
    found = series.rate(track((0, 100), (2, 300), (3, 50), (4, 60)))
    assert list(zip(found.t, found.v, strict=True)) == [(2, 100.0), (4, 10.0)]


@pytest.mark.parametrize(("how", "expected"), [("sum", 30.0), ("mean", 15.0), ("max", 20.0)])
def test_devices_of_a_node_become_one_line(how: str, expected: float) -> None:
    assert list(series.combine([track((0, 10)), track((0, 20))], how).v) == [expected]


def test_a_lost_device_does_not_end_the_line_but_a_lone_reading_is_no_sum() -> None:
    two = series.combine([track((0, 1), (1, 1)), track((0, 2))], "sum")
    assert list(two.v) == [3.0, 1.0]
    three = series.combine([track((0, 1), (1, 1)), track((0, 2)), track((0, 4))], "sum")
    assert list(three.v) == [7.0]


def test_readings_that_come_a_little_late_keep_their_slots() -> None:
    late = track((0.0, 1), (1.2, 2), (1.9, 3), (3.1, 4))
    grid = series.grid_for([late], 0.0, 3.1, 100)
    assert (grid.folded, series.fit(late, grid)[:4]) == (False, [1, 2, 3, 4])


def test_a_spike_of_one_second_survives_thinning() -> None:
    values = [0.0] * 10_000
    values[5_432] = 7.0
    grid = series.grid_for([every_second(values)], 0, 9_999, 200)
    assert max(v for v in series.fit(every_second(values), grid) if v is not None) == 7.0


@settings(max_examples=100)
@given(VALUES, st.integers(2, 50))
def test_thinning_keeps_the_extremes_and_the_limit(values: list[float], limit: int) -> None:
    line = every_second(values)
    grid = series.grid_for([line], 0.0, float(len(values) - 1), limit)
    known = [v for v in series.fit(line, grid) if v is not None]
    assert grid.count <= max(limit, 2)
    assert (min(known), max(known)) == (min(values), max(values))


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4), min_size=1, max_size=30))
def test_a_band_lies_in_order_within_its_lines(lines: list[list[float]]) -> None:
    band = series.band([list(line) for line in lines])
    for slot, (low, middle, high) in enumerate(zip(band.low, band.middle, band.high, strict=True)):
        column = [line[slot] for line in lines]
        assert low is not None
        assert middle is not None
        assert high is not None
        assert min(column) <= low <= middle <= high <= max(column)


def test_only_a_line_far_from_the_others_is_named() -> None:
    lines: list[series.Values] = [[90.0 + i % 3, 91.0] for i in range(40)]
    assert series.outliers(lines, series.band(lines).middle) == []
    lines[17] = [45.0, 44.0]
    assert series.outliers(lines, series.band(lines).middle) == [17]


def test_what_was_not_read_stays_unknown() -> None:
    assert series.short([None, 1234567.0, 0.123456]) == [None, 1235000, 0.1235]
