"""Sizes, rates, powers and times."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.spec.problems import Refusal
from podwright.spec.quantity import (
    bandwidth_bytes_s,
    duration_s,
    exact_duration,
    exact_size,
    power_w,
    size_bytes,
    speed_gbps,
)
from podwright.theme.words import format_duration, format_size


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0B", 0),
        ("1kB", 1000),
        ("1KB", 1000),
        ("80GiB", 80 * 2**30),
        ("80 GiB", 80 * 2**30),
        ("1.5TB", 1_500_000_000_000),
        ("2PB", 2 * 10**15),
        ("1PiB", 2**50),
    ],
)
def test_size(text: str, value: int) -> None:
    assert size_bytes(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("2h", 7200), ("1h30m", 5400), ("1h 30m", 5400), ("500ms", 0.5), ("2d", 172800), ("1.5h", 5400), ("0s", 0)],
)
def test_duration(text: str, value: float) -> None:
    assert duration_s(text) == value


def test_rates_and_powers() -> None:
    assert bandwidth_bytes_s("400GB/s") == 400_000_000_000
    assert (speed_gbps("200Gb/s"), speed_gbps("1.6Tb/s"), speed_gbps("100Mb/s")) == (200, 1600, 0.1)
    assert (power_w("6.5kW"), power_w("300W"), power_w("1.2MW")) == (6500, 300, 1_200_000)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("80", '"80" has no unit\n\nhint: write the size with its unit, like `80GiB`'),
        (
            "80G",
            '"80G" has no unit of a size\n\nhint: write `80GB` (powers of 1000) or `80GiB` (powers of 1024)',
        ),
        ("80Gi", '"80Gi" has no unit of a size\n\nhint: did you mean `80GiB`?'),
        ("80gib", '"80gib" has no unit of a size\n\nhint: did you mean `80GiB`?'),
        ("-1GB", '"-1GB" is not a size\n\nhint: a size is a number and a unit, like `80GiB`'),
        ("1.5B", '"1.5B" is not a whole number of bytes\n\nhint: write it in a smaller unit'),
        ("", "must be a size with a unit\n\nhint: write it like `80GiB`"),
        ("9" * 5000 + "GB", "must be a size with a unit\n\nhint: write it like `80GiB`"),
    ],
)
def test_size_refused(text: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        size_bytes(text)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30", '"30" has no unit\n\nhint: did you mean `30s`? units are d, h, m, s, ms'),
        ("30 minutes", '"30 minutes" is not a time\n\nhint: did you mean `30m`?'),
        (
            "30m1h",
            '"30m1h" is not a time\n\nhint: write it like `30s`, `2h` or `1h30m`; units are d, h, m, s, ms',
        ),
    ],
)
def test_duration_refused(text: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        duration_s(text)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.42, "0.42 s"),
        (12.34, "12.3 s"),
        (41, "41 s"),
        (59.96, "1m 0s"),
        (131, "2m 11s"),
        (3599.7, "1h 0m"),
        (5400, "1h 30m"),
        (86399, "1d 0h"),
        (187200, "2d 4h"),
        (-131, "-2m 11s"),
    ],
)
def test_duration_for_people(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (2 << 30, "2 GiB"),
        (1_048_575, "1 MiB"),
        (1_500_000_000_000, "1.36 TiB"),
    ],
)
def test_size_for_people(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(min_value=0, max_value=2**60))
def test_exact_size_reads_back(size: int) -> None:
    assert size_bytes(exact_size(size)) == size


@given(st.integers(min_value=0, max_value=10**12).map(lambda milliseconds: milliseconds / 1000))
def test_exact_duration_reads_back(seconds: float) -> None:
    assert duration_s(exact_duration(seconds)) == seconds


@given(st.text(max_size=60))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    for parse in (size_bytes, bandwidth_bytes_s, speed_gbps, power_w, duration_s):
        with suppress(Refusal):
            assert parse(text) >= 0
