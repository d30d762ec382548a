"""The scaling law against every published series, the figures it states of itself, and laws of its forecasts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.design.predict import scaling, scaling_errors
from podwright.design.predict.scaling import (
    Measured,
    Range,
    ScalingPoint,
    fit,
    forecast,
    forecast_from_two,
    step_from_marks,
)
from podwright.design.predict.scaling_errors import Series, errors, read_series
from tests.paths import ROOT

CASES = ROOT / "tests" / "cases" / "scaling"
PAGE = ROOT / "docs" / "predict.md"
BEGIN, END = "<!-- errors begin -->\n", "<!-- errors end -->\n"

# Series whose sizes did not run the same program in the same way, so that no law of one program holds for them.
REASONS = {
    "v0.6 Google TPUv3 (chips) maskrcnn": "64 and 128 chips cut each image over four cores, 16 chips do not.",
    "v0.6 Google TPUv3 (chips) ssd": "512 and 1024 chips cut each image over four cores, fewer do not.",
    "v0.6 Google TPUv3 (chips) transformer": "16 chips add gradients up in 16 bits, all others in 32.",
    "v0.7 Google TPU maskrcnn": (
        "evaluation takes 10 s an epoch on 8 and 64 chips, and 19 s on 256, where an epoch of training takes 13 s; "
        "256 chips cut each image over eight cores."
    ),
    "v0.7 Google TPU ssd": (
        "256 chips ran another version of the program, whose step is slower than that of 64 chips with twice the load."
    ),
    "v0.7 Google TPU transformer": "256 chips ran another version of the program.",
    "v0.7 NVIDIA NVIDIA A100-SXM4-40GB (400W) minigo": "games are played beside the training; there is no batch.",
    "v0.7 NVIDIA NVIDIA A100-SXM4-40GB (400W) transformer": (
        "one node trains on sentences of up to 64 tokens, ten nodes on up to 76."
    ),
}


@pytest.fixture(scope="module")
def series() -> list[Series]:
    return read_series((CASES / "series.csv").read_text(encoding="utf-8"))


def names() -> list[str]:
    return [one.name for one in read_series((CASES / "series.csv").read_text(encoding="utf-8"))]


@pytest.mark.parametrize("name", [name for name in names() if name not in REASONS])
def test_the_ends_give_the_middle_within_ten_per_cent(name: str, series: list[Series]) -> None:
    found = errors([one for one in series if one.name == name])
    assert found
    assert [one for one in found if round(abs(one.error), 2) > 0.10] == []


def test_series_set_apart_are_there_and_do_not_fit(series: list[Series]) -> None:
    missed = {one.series for one in errors(series) if round(abs(one.error), 2) > 0.10}
    assert missed == set(REASONS)


def test_every_series_has_three_sizes_or_more(series: list[Series]) -> None:
    assert len(series) == 29
    assert min(len({point.count for point in one.points}) for one in series) >= 3


def test_the_stated_figures_are_those_of_the_series(series: list[Series]) -> None:
    known = [one for one in series if one.batch_known]
    assert round(statistics.median(abs(one.error) for one in errors(series)), 2) == scaling.TYPICAL_ERROR
    shares = statistics.quantiles([one.fixed_share for one in known], n=4)
    assert tuple(round(share, 2) for share in shares) == scaling.FIXED_SHARES
    powers = [sample_power(one) for one in known if one.points[0].batch != one.points[-1].batch]
    assert tuple(round(power, 2) for power in statistics.quantiles(powers, n=4)) == scaling.SAMPLE_POWERS


def sample_power(one: Series) -> float:
    first, last = one.points[0], one.points[-1]
    return math.log(last.samples / first.samples) / math.log(last.batch / first.batch)


def test_beyond_the_fitted_sizes_the_stated_error_holds(series: list[Series]) -> None:
    for one in series:
        if one.name in REASONS:
            continue
        first, second, *_, last = one.points
        predicted_s = fit(first, second).time_s(last.count, last.batch, last.samples)
        bound = scaling.error_at(last.count, first.count, second.count)
        assert abs(predicted_s / last.time_s - 1) <= bound, one.name


def test_the_page_shows_the_errors_as_they_are(series: list[Series], golden: Callable[[Path, str], None]) -> None:
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    table = scaling_errors.table(errors(series), REASONS)
    golden(PAGE, f"{before}{BEGIN}\n{table}\n{END}{after}")


def test_one_local_batch_says_nothing_of_the_fixed_part() -> None:
    law = fit(ScalingPoint(4, 100.0, 400, 1000), ScalingPoint(16, 110.0, 1600, 4000))
    assert law.fixed_s == 0
    assert law.step_s(4, 400) == pytest.approx(40.0)
    assert law.step_s(8, 800) == pytest.approx(42.0)
    assert law.step_s(16, 1600) == pytest.approx(44.0)


def test_a_step_is_the_median_between_marks() -> None:
    marks = [(0.0, 0), (1.0, 10), (2.0, 20), (9.0, 30), (10.0, 40), (10.5, 40), (11.0, 5)]
    assert step_from_marks(marks) == pytest.approx(0.1)
    assert step_from_marks([(0.0, 1)]) is None


COUNTS = st.integers(1, 4096)
RUNS = st.builds(Measured, COUNTS, st.floats(1e-3, 100), st.floats(1, 1e6), st.floats(1, 1e7))


@given(base=RUNS, count=COUNTS, reduce_s=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_forecasts_are_ordered_and_hold_the_run_itself(
    base: Measured, count: int, reduce_s: tuple[float, float]
) -> None:
    made = forecast(base, count, reduce_s)
    ranges = (made.same_local_step_s, made.same_batch_step_s, made.same_local_train_s, made.same_batch_train_s)
    for one in ranges:
        assert one is not None
        assert one.low <= one.expected <= one.high
    itself = forecast(base, base.count, (0.0, 0.0))
    assert itself.same_local_step_s.expected == pytest.approx(base.step_s)
    assert itself.same_batch_step_s.expected == pytest.approx(base.step_s)
    assert itself.speed_up(base).expected == pytest.approx(1.0)


@given(small=st.integers(1, 64), factor=st.integers(2, 64), steps=st.tuples(st.floats(0.1, 1), st.floats(0.1, 1)))
def test_two_runs_are_met_exactly(small: int, factor: int, steps: tuple[float, float]) -> None:
    first, second = Measured(small, steps[0], 1000.0), Measured(small * factor, steps[1], 1000.0)
    assert forecast_from_two(first, second, small).same_batch_step_s.expected == pytest.approx(steps[0])
    assert forecast_from_two(first, second, small * factor).same_batch_step_s.expected == pytest.approx(steps[1])


def test_time_to_train_follows_only_from_a_run_that_reached_its_goal() -> None:
    made = forecast(Measured(8, 0.1), 16, (0.0, 0.0))
    assert made.same_local_train_s is None
    assert made.same_batch_train_s is None
    reached = forecast(Measured(8, 0.1, time_to_train_s=100.0), 8, (0.0, 0.0))
    assert reached.same_batch_train_s == Range(pytest.approx(90.0), pytest.approx(100.0), pytest.approx(110.0))
