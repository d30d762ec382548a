"""How a run ended: a sentence and an exit code."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.cli.terminal import verdict
from podwright.runs import Record

GOAL = {"metric": "mean_iou", "at_least": 0.65}


def record(state: str, **given: Any) -> Record:
    return Record("a-1", "a", "local", state, "/runs/a-1", nodes=1, world_size=1, created_at=0.0, **given)


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["succeeded"], 0),
        (["failed"], 1),
        (["lost"], 1),
        (["cancelled"], 4),
        (["running"], 0),
        (["cancelled", "failed", "succeeded"], 1),
        (["succeeded", "cancelled"], 4),
        ([], 0),
    ],
)
def test_exit_code(states: list[str], code: int) -> None:
    assert verdict.exit_code(states) == code


def test_an_unreachable_target_comes_before_all() -> None:
    assert verdict.worst([4, 1, 3, 0]) == 3


@pytest.mark.parametrize(
    ("given", "goal", "text"),
    [
        ({}, None, "in 2m 11s"),
        ({"results": {"loss": 0.41, "step": 9}}, None, "loss 0.41 in 2m 11s"),
        (
            {"results": {"mean_iou": 0.71}, "time_to_train_s": 114.0, "goal_value": 0.66},
            GOAL,
            "mean_iou 0.66 >= 0.65, time to train 1m 54s; ended at 0.71 in 2m 11s",
        ),
        (
            {"results": {"mean_iou": 0.66}, "time_to_train_s": 114.0, "goal_value": 0.66},
            GOAL,
            "mean_iou 0.66 >= 0.65, time to train 1m 54s; ended in 2m 11s",
        ),
        (
            {"results": {"mean_iou": 0.64}, "time_to_train_s": 114.0, "goal_value": 0.66},
            GOAL,
            "mean_iou 0.66 >= 0.65, time to train 1m 54s; ended at 0.64 in 2m 11s",
        ),
        (
            {"results": {"mean_iou": 0.71}, "time_to_train_s": 114.0},
            GOAL,
            "mean_iou >= 0.65, time to train 1m 54s; ended at 0.71 in 2m 11s",
        ),
        ({"results": {"mean_iou": 0.61}}, GOAL, "mean_iou 0.61, goal >= 0.65 not reached, in 2m 11s"),
        (
            {"results": {"mean_iou": 0.71}},
            GOAL,
            "mean_iou 0.71 was read, not reported: it meets >= 0.65 once the program reports it or `results:` names it,"
            " in 2m 11s",
        ),
        ({"results": {"loss": 0.61}}, GOAL, "mean_iou was never reported (goal >= 0.65), in 2m 11s"),
        ({"attempts": 3}, None, "in 2m 11s, 3 attempts"),
    ],
)
def test_sentence_of_a_success(given: dict[str, Any], goal: dict[str, Any] | None, text: str) -> None:
    assert verdict.sentence(record("succeeded", duration_s=131.0, **given), goal) == ("succeeded", text)


def test_sentences_of_other_ends() -> None:
    assert verdict.sentence(record("cancelled", duration_s=12.0), None) == ("cancelled", "after 12 s")
    assert verdict.sentence(record("lost", reason="its nodes are gone"), None) == ("lost", "its nodes are gone")
    assert verdict.sentence(record("failed"), None) == ("failed", "after -")


def test_sentences_of_a_parent() -> None:
    assert verdict.sentence(record("succeeded", duration_s=12.0), GOAL, points=3) == (
        "succeeded",
        "3 points in 12 s",
    )
    failed = record("failed", reason="2 succeeded, 1 failed", duration_s=12.0)
    assert verdict.sentence(failed, GOAL, points=3) == ("failed", "2 succeeded, 1 failed")
