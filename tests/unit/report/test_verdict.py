"""The first screen: what is said of every kind of run."""

import pytest

from podwright.analysis.data import ReportData
from podwright.analysis.ranks import story_of
from podwright.report.verdict import figures_of, verdict_of
from tests.unit.report.made import made

SENTENCES = {
    "succeeded": "Reached mean IoU 0.67, goal at least 0.65, in 1m 31s.",
    "missed": "Finished in 2m 7s but missed the goal: mean IoU 0.52, goal at least 0.65.",
    "failed": "Failed: rank 3 on dgx002 exited with 1 after 58.1 s; ranks 0-2 were stopped.",
    "running": "Still running: 1m 5s so far, step 273 of 540, mean IoU 0.61 against a goal of at least 0.65.",
    "cancelled": "Cancelled after 41 s, step 168 of 540, mean IoU 0.52 against a goal of at least 0.65.",
    "lost": "Lost: no word from any node for 5m.",
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_one_sentence_says_it(kind: str, gathered: dict[str, ReportData]) -> None:
    assert verdict_of(story_of(gathered[kind])).sentence == SENTENCES[kind]


def test_a_failure_comes_with_its_last_lines_what_was_seen_and_where_to_look(gathered: dict[str, ReportData]) -> None:
    verdict = verdict_of(story_of(gathered["failed"]))
    assert verdict.tail[-2] == "RuntimeError: CUDA error: uncorrectable ECC error encountered"
    assert verdict.next == "podwright logs segmentation-7f3k --rank 3"
    assert verdict.reasons == (
        "RuntimeError: CUDA error: uncorrectable ECC error encountered.",
        "Seen on dgx002 at 03:55:12 UTC: gpu 1: 1 uncorrectable ECC error.",
        "Seen on dgx002 at 03:55:12 UTC: gpu 1: XID 48: double bit ECC error.",
    )


def test_a_run_of_which_nothing_is_known_is_waiting() -> None:
    nothing = made({"created_at": "2025-11-16T03:54:08Z"})
    assert verdict_of(story_of(nothing)).sentence == "Waiting for nodes since 2025-11-16 03:54:08 UTC."


def test_a_value_that_was_only_read_and_would_meet_the_goal_is_called_so() -> None:
    goal = {"metric": "loss", "at_most": 0.5}
    record = {"id": "x", "state": "succeeded", "duration_s": 4.0, "goal": goal, "results": {"loss": 0.4}}
    sentence = verdict_of(story_of(made(record))).sentence
    expected = "loss 0.40, which was read, not reported, and counts once the program reports it or `results:` names it"
    assert expected in sentence


def test_figures_carry_unit_and_origin(gathered: dict[str, ReportData]) -> None:
    shown = [(figure.label, figure.value, figure.note) for figure in figures_of(story_of(gathered["succeeded"]))]
    assert shown == [
        ("Time to train", "1m 31s", "from the first start of the ranks to the goal, measured"),
        ("Duration", "2m 7s", "after 7.9 s of waiting"),
        ("Mean IoU", "0.70", "last value, goal at least 0.65"),
        ("Cost", "–", "no prices given"),  # noqa: RUF001
        ("World size", "4", "2 nodes x 2 ranks"),
        ("Attempts", "2", "1 retry"),
        ("Energy", "66.1 Wh", "GPUs and CPUs, measured"),
    ]


def test_prices_make_a_cost() -> None:
    record = {"id": "x", "state": "succeeded", "cost": {"amount": 1234.5, "currency": "EUR", "origin": "modelled"}}
    figures = figures_of(story_of(made(record)))
    assert [(f.value, f.note) for f in figures if f.label == "Cost"] == [("1,234.50 EUR", "modelled")]


def test_a_run_that_was_put_back_spent_no_retry() -> None:
    record = {"id": "x", "state": "succeeded", "attempts": 2}
    figures = figures_of(story_of(made(record)))
    assert [(f.value, f.note) for f in figures if f.label == "Attempts"] == [("2", "no retry was spent")]
