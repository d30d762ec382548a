"""`tag` and `note`: on runs that are over, and kept by whatever else is done with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podwright.launch import Session, find
from podwright.reading.run_data import gather
from podwright.runs import Home
from tests.fixtures.bad_runs import bad_home, call

__all__ = ["bad_home"]


def shown(run: str) -> dict[str, Any]:
    code, out, err = call("show", run, "--json")
    assert code == 0, err
    return dict(json.loads(out))


def listed() -> dict[str, list[str]]:
    return {row["id"]: row["tags"] for row in json.loads(call("ps", "--all", "--json")[1])}


def test_runs_that_are_over_and_sealed_are_tagged(bad_home: Home) -> None:
    find(Session(bad_home), "good-2222").wait()
    assert bad_home.folder("good-2222").is_sealed
    code, out, err = call("tag", "good-2222", "good-3333", "+paper", "+draft", "-never", "--json")
    assert (code, json.loads(out)) == (0, {"runs": ["good-2222", "good-3333"], "tags": ["draft", "paper"]}), err
    assert call("tag", "good-2222", "-draft")[1] == "paper\n"
    assert shown("good-2222")["tags"] == ["paper"]
    assert listed() == {"good-2222": ["paper"], "good-3333": ["draft", "paper"], "sweep-4444": []}
    assert gather(bad_home.runs / "good-2222").record.tags == ("paper",)


def test_a_note_is_written_over_and_taken_away(bad_home: Home) -> None:
    call("note", "good-2222", "first")
    code, out, err = call("note", "good-2222", " the one with more frames\n", "--json")
    assert (code, json.loads(out)) == (0, {"run": "good-2222", "note": "the one with more frames"}), err
    assert shown("good-2222")["note"] == "the one with more frames"
    assert call("note", "good-2222", "")[2] == "noted     good-2222 has no note\n"
    assert shown("good-2222")["note"] == ""


def test_a_sweep_has_tags_of_its_own(bad_home: Home) -> None:
    call("tag", "sweep-4444", "+paper")
    assert shown("sweep-4444")["tags"] == ["paper"]
    assert [point["tags"] for point in shown("sweep-4444")["points"]] == [[], []]


def test_the_index_made_again_has_them(bad_home: Home) -> None:
    call("tag", "good-2222", "+paper")
    assert call("rebuild")[0] == 0
    assert listed()["good-2222"] == ["paper"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["good-2222", "+a b"], '"a b" is no tag'),
        (["+paper"], "RUN: is missing"),
        ([], "is missing"),
        (["nobody", "+paper"], "there is no run 'nobody'"),
        (["good-2222", "--paper"], "--paper: unknown option"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_written(bad_home: Home, words: list[str], said: str) -> None:
    code, _, err = call("tag", *words)
    assert code == 2
    assert said in err
    assert set().union(*listed().values()) == set()


def test_tags_and_a_note_that_are_wrong_are_refused_before_a_run_starts(bad_home: Home) -> None:
    for option, text, said in (("--tag", "a,,b", "--tag: "), ("--note", "x" * 10_001, "--note: has 10,001 characters")):
        code, _, err = call("run", "no.yaml", option, text)
        assert code == 2
        assert said in err
