"""Filters over runs: what each means, on an index in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.runs import Record
from podwright.runs.index import Index
from podwright.runs.query import NEWEST_FIRST, RunOrder, condition_of
from podwright.spec.filters import parse_filter
from podwright.spec.problems import Refusal
from tests.unit.runs.made import START


def run(run_id: str, at: int, **fields: Any) -> Record:
    return replace(Record(run_id, "toy", "local", "succeeded", "/x", 1, 1, START + at), **fields)


RUNS = [
    run(
        "seg-2222", 0, name="seg", user="anna", results={"loss": 0.2, "took_s": 3.0}, duration_s=7200.0, tags=("paper",)
    ),
    run("toy-3333", 1, state="failed", user="ben", target="adas:slurm", team="vision"),
    run("toy-4444", 2, tags=("paper", "draft"), user="anna"),
    run("toy-4444-1", 3, parent="toy-4444", matrix={"lr": 0.1, "amp": True}, results={"loss": 0.3}, user="anna"),
    run("toy-4444-2", 4, parent="toy-4444", matrix={"lr": 0.01, "opt": "adam"}, results={"loss": 0.1}, user="anna"),
    run("odd-5555", 5, results={"lr": 7.0, "%_\"'": 1.0, "name": 1.0}, cost={"amount": 9.5, "currency": "EUR"}),
]
INDEX = Index.of(RUNS)


def chosen(text: str, me: str | None = "anna") -> list[str]:
    condition = condition_of(parse_filter(text), INDEX.fact_names(), me)
    return [record.id for record in reversed(INDEX.chosen(condition, NEWEST_FIRST, None))]


ALL = [record.id for record in RUNS]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("loss<0.3", ["seg-2222", "toy-4444-2"]),
        ("loss<=0.3 and user=me", ["seg-2222", "toy-4444-1", "toy-4444-2"]),
        ("results.loss=0.10", ["toy-4444-2"]),
        ("matrix.lr=0.01", ["toy-4444-2"]),
        ("matrix.lr=1e-2 or opt~ada", ["toy-4444-2"]),
        ("amp=true", ["toy-4444-1"]),
        ("tag=paper", ["seg-2222", "toy-4444", "toy-4444-1", "toy-4444-2"]),
        ("tag=paper and not tag=draft", ["seg-2222"]),
        ("name=seg", ["seg-2222"]),
        ("results.name=1", ["odd-5555"]),
        ("state=failed or team=vision", ["toy-3333"]),
        ("state!=succeeded", ["toy-3333"]),
        ("target~slurm", ["toy-3333"]),
        ("duration_s>=2h", ["seg-2222"]),
        ("duration_s<7200", []),
        ("cost>9", ["odd-5555"]),
        ("id~4444-", ["toy-4444-1", "toy-4444-2"]),
        ("created>=2100-01-01", []),
        ("created>2023-11-14T22:13:23 and created<2023-11-14T22:13:25", ["toy-4444-2"]),
        ("not (loss<0.3 or user=me)", ["toy-3333", "odd-5555"]),
        ("opt>1", []),
        ('"%_\\"\'"=1', ["odd-5555"]),
        ("results.nobody=1", []),
        ("not results.nobody=1", ALL),
    ],
)
def test_a_filter_chooses(text: str, ids: list[str]) -> None:
    assert chosen(text) == ids


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr<1", "filter:1:1: lr: may be what was varied or what programs told\n\nhint: write matrix.lr or results.lr"),
        ("los<1", "filter:1:1: los: is no field, and no run has a value of it\n\nhint: did you mean `loss`?"),
        ("loss<1 and state=runing", "did you mean `running`?"),
        ("loss<low", '"low" is not a number'),
        ("duration_s<2x", '"2x" is not a time'),
        ("created>soon", '"soon" is not a time'),
        ("cost~9", "has no parts that `~` could look for"),
    ],
)
def test_what_a_filter_cannot_mean_is_refused(text: str, said: str) -> None:
    with pytest.raises(Refusal) as refusal:
        chosen(text)
    assert said in str(refusal.value)


TESTS = st.sampled_from(["loss<0.25", "tag=paper", "matrix.lr!=0.1", "user=me", "state=failed", "opt~a", "cost>1"])
FILTERS = st.recursive(
    TESTS,
    lambda inner: st.builds("({}) {} not ({})".format, inner, st.sampled_from(["and", "or"]), inner),
    max_leaves=5,
)


@given(FILTERS)
def test_not_is_everything_else(text: str) -> None:
    assert sorted(chosen(text) + chosen(f"not ({text})")) == sorted(ALL)


def test_a_filter_of_a_thousand_parts_is_no_deeper_than_sqlite_takes() -> None:
    assert chosen(" or ".join(["id=a"] * 1200)) == []


def test_runs_are_sorted_by_a_value_and_those_without_one_come_last() -> None:
    condition = condition_of(parse_filter("user=me"), INDEX.fact_names(), "anna")
    found = [record.id for record in INDEX.chosen(condition, RunOrder("results.loss"), None)]
    assert found == ["toy-4444-2", "seg-2222", "toy-4444-1", "toy-4444"]
    greatest = [record.id for record in INDEX.chosen(condition, RunOrder("results.loss", descending=True), 2)]
    assert greatest == ["toy-4444-1", "seg-2222"]


def test_what_is_forgotten_is_not_found() -> None:
    index = Index.of(RUNS)
    index.drop(["seg-2222", "odd-5555"])
    assert "results.took_s" not in index.fact_names()
    index.put([replace(RUNS[4], results={"iou": 0.5})])
    assert "results.loss" in index.fact_names()
    assert [
        record.id
        for record in index.chosen(condition_of(parse_filter("loss>0"), index.fact_names(), None), NEWEST_FIRST, None)
    ] == ["toy-4444-1"]
