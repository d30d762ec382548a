"""Numbers as a person reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.cli.terminal import figures


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.41234, "0.412"),
        (0.5, "0.5"),
        (3, "3"),
        (3.0, "3"),
        (12345.6, "12346"),
        (1234567.8, "1.23e+06"),
        (1e-5, "1e-05"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        ("adam", "adam"),
        (True, "True"),
    ],
)
def test_value(number: object, text: str) -> None:
    assert figures.value(number) == text


def test_results_leave_out_what_only_tells_how_far() -> None:
    values = {"step": 3, "loss": 0.5, "mean_iou": 0.61, "epochs": 6, "lr": 0.1}
    assert figures.results(values, limit=2) == "loss 0.5  mean_iou 0.61"


def test_results_name_what_a_person_asks_first() -> None:
    values = dict.fromkeys(
        ["checkpoint_s", "compute_s", "eval_accuracy", "lr", "samples_per_s", "temperature", "train_loss"], 1
    )
    assert figures.results(values) == (
        "train_loss 1  eval_accuracy 1  samples_per_s 1  temperature 1  checkpoint_s 1  compute_s 1  lr 1"
    )
    assert figures.results(values, 2, goal="lr") == "lr 1  train_loss 1"


def test_seconds_between() -> None:
    assert figures.seconds_between(None, None, 105.0) is None
    assert figures.seconds_between(100.0, None, 105.0) == 5
    assert figures.seconds_between(100.0, 101.5, 105.0) == 1.5
    assert figures.seconds_between(160.0, None, 105.0) == 0


def test_curve_draws_the_latest_values_at_the_right() -> None:
    assert figures.curve([0, 50, 100], 5) == "  ▁▅█"
    assert figures.curve([0, 0, 0, 100, 100], 2) == "██"


@given(st.lists(st.floats(-10, 1000), max_size=50), st.integers(1, 40))
def test_curve_is_as_wide_as_asked(values: list[float], width: int) -> None:
    assert len(figures.curve(values, width)) == width


@given(st.floats(-2, 3), st.integers(0, 80))
def test_bar_is_as_wide_as_asked(share: float, width: int) -> None:
    assert len("".join(figures.bar(share, width))) == width


@given(st.lists(st.floats(0, 100), min_size=1, max_size=300), st.integers(2, 40))
def test_spread_keeps_least_and_greatest(values: list[float], count: int) -> None:
    picked = figures.spread(values, count)
    assert len(picked) == min(count, len(values))
    assert picked[0] == min(values)
    assert picked[-1] == max(values)
    assert picked == sorted(picked)
