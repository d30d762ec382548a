"""The record as JSON: exactly the keys of the contract, and back again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from podwright.runs import Fold, Record
from podwright.runs.record import as_row, from_row, iso, sum_up
from tests.unit.runs.made import START, asked, end, event, go, parsed, result

KEYS = """
id name parent matrix target state reason exit_code attempts nodes spares hosts world_size
created_at started_at ended_at duration_s time_to_train_s results progress goodput cost verified
user team tags note folder imported_from
"""


def record(run_id: str, **changes: object) -> Record:
    fold = Fold(asked(run_id), f"/runs/{run_id}")
    fold.take(parsed(go(), result(3.0, loss=0.5), end()))
    return replace(fold.record(START + 20), **changes)  # type: ignore[arg-type]


def test_the_json_has_exactly_the_keys_of_the_contract() -> None:
    assert sorted(record("toy-1").as_json()) == sorted(KEYS.split())
    assert sorted(sum_up(asked(), "/x", [record("toy-1")]).as_json()) == sorted(KEYS.split())


def test_times_are_iso_8601_in_utc() -> None:
    row = record("toy-1").as_json()
    assert (row["created_at"], row["started_at"], row["ended_at"]) == (
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:21.000Z",
        "2023-11-14T22:13:29.000Z",
    )
    assert iso(None) is None


TIMES = st.integers(0, 4 * 10**12).map(lambda ms: ms / 1000)
RECORDS = st.builds(
    Record,
    id=st.text(max_size=5),
    name=st.text(max_size=5),
    target=st.just("local"),
    state=st.sampled_from(["pending", "succeeded", "lost"]),
    folder=st.text(max_size=5),
    nodes=st.integers(1, 9),
    world_size=st.integers(1, 99),
    created_at=TIMES,
    parent=st.none() | st.text(max_size=3),
    matrix=st.none() | st.just({"lr": 0.1}),
    exit_code=st.none() | st.integers(0, 255),
    hosts=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    started_at=st.none() | TIMES,
    ended_at=st.none() | TIMES,
    results=st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False), max_size=3),
    goal=st.none() | st.just({"metric": "iou", "at_least": 0.5}),
)


@given(RECORDS)
def test_a_record_comes_back_from_its_json(one: Record) -> None:
    back = from_row(as_row(one))
    times = ("created_at", "started_at", "ended_at")
    assert all(abs((getattr(back, name) or 0.0) - (getattr(one, name) or 0.0)) < 0.001 for name in times)
    assert replace(back, **{name: getattr(one, name) for name in times}) == one


def test_a_parent_adds_up_its_points() -> None:
    points = [
        record("toy-1", hosts=("a", "b")),
        record("toy-2", state="failed", exit_code=7, attempts=3, hosts=("b", "c"), started_at=START - 5),
        record("toy-3", ended_at=START + 50),
    ]
    parent = sum_up(asked("toy", points=3), "/runs/toy", points)
    assert (parent.state, parent.reason, parent.exit_code) == ("failed", "2 succeeded, 1 failed", 7)
    assert (parent.attempts, parent.hosts) == (5, ("a", "b", "c"))
    assert (parent.started_at, parent.ended_at, parent.duration_s) == (START - 5, START + 50, 55.0)
    assert (parent.results, parent.parent, parent.matrix) == ({}, None, None)


def test_a_parent_with_an_open_point_has_no_end() -> None:
    open_point = record("toy-2", state="running", ended_at=None, exit_code=None)
    parent = sum_up(asked("toy", points=2), "/x", [record("toy-1"), open_point])
    assert (parent.state, parent.ended_at, parent.duration_s, parent.exit_code) == ("running", None, None, None)
    assert parent.reason == "1 succeeded, 1 running"


def test_a_parent_of_points_that_all_succeeded_exits_with_0() -> None:
    assert sum_up(asked("toy", points=1), "/x", [record("toy-1")]).exit_code == 0
    assert sum_up(asked("toy", points=1), "/x", []).state == "pending"


def test_what_a_run_took_does_not_shrink_when_it_is_found_lost() -> None:
    """Until it was found gone it was shown as one that goes on."""
    fold = Fold(asked(), "")
    fold.take(parsed(go(1.0), event("ready", 2.0, world_size=4)))
    shown = fold.record(START + 100.0).duration_s
    fold.take(parsed({"t": START + 101.0, "k": "gone", "why": ""}, {"t": START + 111.0, "k": "lost", "why": "x"}))
    lost = fold.record(START + 500.0)
    assert (lost.state, shown, lost.duration_s) == ("lost", 99.0, 100.0)


def test_a_note_from_before_says_nothing_of_a_run_that_waits_again() -> None:
    fold = Fold(asked(), "")
    fold.take(parsed(go(1.0), event("retry", 50.0, attempt=2, why="node 1 was silent for 30 s", lost=1)))
    fold.take(parsed({"t": START + 0.5, "k": "waiting", "why": "waits in the queue"}))
    record = fold.record(START + 60.0)
    assert (record.state, record.reason) == ("pending", "node 1 was silent for 30 s")
    fold.take(parsed({"t": START + 55.0, "k": "waiting", "why": "may not start yet"}))
    assert fold.record(START + 60.0).reason == "may not start yet"


def test_a_run_without_its_leader_waits() -> None:
    fold = Fold(asked(), "")
    why = "the leader on a is gone; another is waited for"
    fold.take(parsed(go(1.0), event("ready", 2.0, world_size=4), event("alone", 40.0, n=1, why=why)))
    record = fold.record(START + 60.0)
    assert (record.state, record.reason) == ("pending", why)
