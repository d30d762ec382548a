"""`ps --where`, `--sort`, `--columns`, `--tree`, and `best`, on a home as commands see it."""

from __future__ import annotations

import json

import pytest

from podwright.runs import Home
from tests.fixtures.bad_runs import bad_home, call

__all__ = ["bad_home"]


def listed(*words: str) -> list[str]:
    code, out, err = call("ps", *words, "--json")
    assert code == 0, err
    return [row["id"] for row in json.loads(out)]


def rows(*words: str) -> list[list[str]]:
    return [line.split() for line in call("ps", *words)[1].splitlines()]


def test_points_are_found_like_other_runs(bad_home: Home) -> None:
    assert listed("--where", "lr=1") == ["sweep-4444-2"]
    call("tag", "sweep-4444", "+paper")
    assert sorted(listed("--where", "tag=paper")) == ["sweep-4444", "sweep-4444-1", "sweep-4444-2"]


def test_a_tree_has_points_behind_their_sweep(bad_home: Home) -> None:
    assert listed("--tree", "--state", "succeeded", "--name", "*")[-3:] == [
        "sweep-4444",
        "sweep-4444-1",
        "sweep-4444-2",
    ]
    lines = call("ps", "--tree", "--where", "lr=1")[1].splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["sweep-4444", ""]


def test_columns_stand_instead_of_the_outcome(bad_home: Home) -> None:
    head, *rest = rows("--sort=-lr", "--columns", "lr,loss", "--where", "state=succeeded")
    assert head == ["RUN", "STATE", "TARGET", "NODES", "AGE", "TOOK", "LR", "LOSS"]
    assert [row[0] for row in rest[:2]] == ["sweep-4444-2", "sweep-4444-1"]
    assert rest[0][-2:] == ["1", "0.5"]
    assert rest[-1][-2] == "-"


def test_the_flags_and_a_filter_choose_together(bad_home: Home) -> None:
    assert listed("--state", "failed", "--where", "loss<1") == ["good-3333"]
    assert listed("--on", "local", "--name", "g[!x]*", "--where", "loss<1") == []
    assert listed("--since", "1m", "--where", "loss<1") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--where", "loss<"], "filter:1:6: a value is missing here"),
        (["--sort", "los"], '--sort: no run has "los"'),
        (["--columns", "lr,los"], "did you mean `loss`?"),
        (["--sort", "tag"], "--sort: runs have several tags"),
    ],
)
def test_what_is_wrong_is_said(bad_home: Home, words: list[str], said: str) -> None:
    call("ps", "--all")
    code, _, err = call("ps", *words)
    assert code == 2
    assert said in err


def best(*words: str) -> tuple[int, str | None]:
    code, out, err = call("best", *words, "--json")
    assert code in (0, 1), err
    found = json.loads(out)
    return code, found and found["id"]


def test_the_best_is_by_the_goal_or_as_the_user_says(bad_home: Home) -> None:
    for name, loss in (("good-2222", 0.9), ("sweep-4444-2", 0.1)):
        path = bad_home.runs / name / "record" / "n0.r0" / "events.jsonl"
        path.write_text(path.read_text().replace('"loss": 0.5', f'"loss": {loss}'))
    assert best("toy") == (0, "sweep-4444-2")
    assert best("toy", "--highest") == (0, "good-2222")
    assert best("sweep-4444", "--metric", "loss", "--highest") == (0, "sweep-4444-1")
    assert best("toy", "--metric", "accuracy") == (1, None)
    assert best("nobody") == (1, None)


def test_a_metric_whose_name_does_not_say_what_is_good_is_asked_about(bad_home: Home) -> None:
    code, _, err = call("best", "toy", "--metric", "step")
    assert code == 2
    assert "`--highest` or `--lowest`" in err
    assert best("toy", "--metric", "step", "--lowest")[0] == 0
