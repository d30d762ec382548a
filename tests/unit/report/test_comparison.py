"""Runs side by side: who came first, and nothing measured against a run that did not succeed."""

import re
from pathlib import Path

import pytest

from podwright.analysis.data import ReportData
from podwright.reading.run_data import gather
from podwright.report import render_comparison
from tests.unit.report.made import made
from tests.unit.report.test_page import Reader

RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"
ENDED = ("succeeded", "failed", "cancelled", "lost")


def run(name: str, state: str = "succeeded", **record: object) -> ReportData:
    return made({"id": name, "state": state, **record})


def recorded(*names: str) -> list[ReportData]:
    return [gather(RECORDED / name) for name in names]


def headline(runs: list[ReportData]) -> str:
    return re.findall(r'<h1 id="verdict-h">([^<]*)</h1>', render_comparison(runs))[0]


def test_a_failed_run_is_called_failed_and_the_others_are_in_order() -> None:
    assert headline(recorded("broken", "retried", "never")) == (
        "Only retried-69ap reached the goal, in 3.9 s. never-kc9k did not reach it. broken-y5mt failed."
    )


def test_nothing_is_measured_against_a_failed_run() -> None:
    lines = Reader(render_comparison(recorded("broken", "retried", "never"))).lines
    at = lines.index("duration")
    assert lines[at : at + 5] == ["duration", "0.76 s", "4.9 s", "1.5 s", "−68.6 %"]  # noqa: RUF001
    assert "broken-y5mt, failed" in lines
    [note] = [line for line in lines if line.startswith("Each value is of one run")]
    assert "the difference is against retried-69ap, the first that succeeded, for runs that succeeded." in note


def test_runs_of_which_none_succeeded_are_not_measured_at_all() -> None:
    runs = [run("a", "failed", duration_s=1.0), run("b", "lost", duration_s=20.0)]
    lines = Reader(render_comparison(runs)).lines
    assert "None of these runs succeeded, so no order can be given. a failed. b was lost." in lines
    assert not [line for line in lines if line.endswith(" %")]
    [note] = [line for line in lines if line.startswith("Each value is of one run")]
    assert "no run succeeded, so there is nothing to measure against." in note


@pytest.mark.parametrize("state", ENDED)
def test_a_run_that_ended_is_never_called_unended(state: str) -> None:
    said = headline([run("a", duration_s=4.0), run("b", state, duration_s=2.0)])
    assert "ended yet" not in said
    assert "Not all" not in said


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (
            [run("a", duration_s=4.0), run("b", duration_s=2.0)],
            "b ended first, in 2 s: 50 % sooner than a.",
        ),
        (
            [run("a", duration_s=4.0), run("b", duration_s=4.0)],
            "a and b ended first, in 4 s.",
        ),
        (
            [run("a", duration_s=4.0), run("b", duration_s=2.0), run("c", "failed"), run("d", "failed")],
            "b ended first, in 2 s: 50 % sooner than a. c and d failed.",
        ),
        (
            [run("a", duration_s=4.0), run("b", "running"), run("c", "pending"), run("d", "cancelled")],
            "Only a succeeded, so no order can be given. b and c have not ended yet. d was cancelled.",
        ),
        (
            [run("a"), run("b", duration_s=2.0)],
            "These runs do not report how long they took, so no order can be given.",
        ),
    ],
)
def test_the_order_in_one_sentence(runs: list[ReportData], sentence: str) -> None:
    assert headline(runs) == sentence
