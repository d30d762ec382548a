"""A page of metrics: names together, values that are none left out, and what OpenMetrics wants otherwise."""

from __future__ import annotations

import math

import pytest

from podwright.telemetry.page import MetricSample, is_blank, page

KINDS = {
    "up": ("gauge", "Whether it works."),
    "sent_bytes_total": ("counter", "Sent."),
    "OLD_COUNTER": ("counter", "A counter of an old name."),
}
SAMPLES = [
    MetricSample("sent_bytes_total", (("port", "b"),), 2.0),
    MetricSample("up", (("host", "a"), ("gpu", "")), 1.0),
    MetricSample("OLD_COUNTER", (), 3.5),
    MetricSample("sent_bytes_total", (("port", "a"),), 1e18),
]


def test_samples_of_a_name_stand_together_under_its_kind() -> None:
    assert page(KINDS, SAMPLES) == (
        "# HELP up Whether it works.\n# TYPE up gauge\n"
        'up{host="a"} 1\n'
        "# HELP sent_bytes_total Sent.\n# TYPE sent_bytes_total counter\n"
        'sent_bytes_total{port="a"} 1e+18\nsent_bytes_total{port="b"} 2\n'
        "# HELP OLD_COUNTER A counter of an old name.\n# TYPE OLD_COUNTER counter\n"
        "OLD_COUNTER 3.5\n"
    )


def test_openmetrics_names_counters_without_their_ending_and_has_an_end() -> None:
    text = page(KINDS, SAMPLES, open_metrics=True)
    assert "# TYPE sent_bytes counter\n" in text
    assert 'sent_bytes_total{port="b"} 2\n' in text
    assert "# TYPE OLD_COUNTER unknown\n" in text
    assert text.endswith("# EOF\n")


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, 9223372036854775794, 0x7FFFFFF0, 0x7FFFFFFF, float(1 << 47), (1 << 63) - 1]
)
def test_a_value_that_stands_for_none_is_left_out(value: float) -> None:
    assert is_blank(value)
    assert page(KINDS, [MetricSample("up", (), value)]) == "\n"


@pytest.mark.parametrize("value", [0, -8, 2 << 30, 150754820096, 4_294_967_295, 1.5e17])
def test_a_large_value_is_a_value(value: float) -> None:
    assert not is_blank(value)


def test_a_label_cannot_end_its_quotes() -> None:
    samples = [MetricSample("up", (("run", 'a"} 1\nup{run="b\\'),), 1)]
    assert page(KINDS, samples).splitlines()[2:] == ['up{run="a\\"} 1\\nup{run=\\"b\\\\"} 1']
