"""What events add up to: state, reason, attempts, results, times."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.runs import FINAL, SETTLED, STATES, Fold, Record
from tests.unit.runs.made import START, asked, end, event, go, parsed, result

READY = event("ready", 2.0, world_size=4)


def folded(*events: dict[str, Any], now: float = 100.0, **changes: Any) -> Record:
    fold = Fold(asked(**changes), "/runs/toy-2222")
    fold.take(parsed(*events))
    return fold.record(START + now)


def client(kind: str, t: float, **fields: Any) -> dict[str, Any]:
    return {"t": START + t, "k": kind, "pid": 1, **fields}


def engine(state: str, t: float = 9.0, reason: str = "", code: int | None = None) -> dict[str, Any]:
    return {"t": START + t, "k": "end", "state": state, "reason": reason, "code": code}


STATE_CASES = {
    "nothing yet": ([], "pending"),
    "pilots are up": ([event("pilot"), event("joined", node=0)], "pending"),
    "all joined": ([go()], "starting"),
    "every rank was seen": ([go(), READY], "running"),
    "done": ([go(), READY, end()], "succeeded"),
    "done before every rank was seen": ([go(), end()], "succeeded"),
    "failed": ([go(), READY, end(state="failed")], "failed"),
    "stopped": ([go(), READY, end(state="terminated")], "cancelled"),
    "a retry is due": ([go(), READY, event("retry", 3.0, why="rank 1 exited with 1")], "pending"),
    "the retry runs": ([go(), READY, event("retry", 3.0, why="x"), go(4.0, (0, 1))], "starting"),
    "given back": ([event("given_back", 3.0, why="node 1 did not join within 600 s")], "pending"),
    "ended, then a new attempt": ([go(), end(state="terminated"), go(20.0, (1, 0))], "starting"),
    "its end was read before its beginning": ([end(), go()], "succeeded"),
    "a beginning that is read twice": ([go(), end(), go()], "succeeded"),
    "lost": ([go(), READY, client("lost", 50.0, why="gone")], "lost"),
    "lost and turned up": ([go(), READY, client("lost", 5.0, why="gone"), result(6.0)], "running"),
    "lost and ended after all": ([go(), client("lost", 5.0, why="gone"), end()], "succeeded"),
    "only the engine knows how it ended": ([go(), READY, engine("failed", reason="why")], "failed"),
    "only the engine knows that it succeeded": ([go(), READY, engine("succeeded", code=0)], "succeeded"),
    "cancelled before it began": ([client("cancel", 1.0), engine("terminated")], "cancelled"),
    "the pilots' own word counts more than the engine's": ([go(), end(), engine("failed")], "succeeded"),
    "given up by the engine, which stopped the pilots": (
        [go(), end(state="terminated"), engine("failed", reason="a node ended 11 times")],
        "failed",
    ),
    "cancelled, and the pilots say so": (
        [go(), client("cancel", 3.0), end(state="terminated"), engine("terminated")],
        "cancelled",
    ),
}


@pytest.mark.parametrize(("events", "state"), STATE_CASES.values(), ids=STATE_CASES.keys())
def test_state(events: list[dict[str, Any]], state: str) -> None:
    assert folded(*events).state == state


def test_a_whole_run() -> None:
    record = folded(
        event("pilot", 0.5),
        go(1.0),
        READY,
        result(3.0, loss=0.5, step=1),
        event("failed", 4.0, rank=1),
        event("retry", 4.5, why="rank 1 on a exited with 1"),
        go(6.0, (0, 1), ("a", "c")),
        event("ready", 7.0, (0, 1)),
        result(8.0, (0, 1), loss=0.25, step=2),
        event("goal", 8.5, (0, 1), metric="loss", value=0.25),
        end(11.0, (0, 1)),
    )
    assert (record.state, record.exit_code, record.reason, record.attempts) == ("succeeded", 0, "", 2)
    assert (record.hosts, record.world_size, record.nodes) == (("a", "c"), 4, 2)
    assert (record.started_at, record.ended_at, record.duration_s) == (START + 1.0, START + 11.0, 10.0)
    assert (record.time_to_train_s, record.goal_value) == (7.5, 0.25)
    assert record.results == {"loss": 0.25, "step": 2}


def test_a_pending_run_says_why_and_a_running_one_needs_no_reason() -> None:
    retry = event("retry", 3.0, why="node 1 was silent for 30 s")
    assert folded(go(), retry).reason == "node 1 was silent for 30 s"
    assert folded(go(), retry, go(4.0, (1, 0))).reason == ""


def test_the_reason_of_the_end_is_told() -> None:
    record = folded(go(), end(state="failed", reason="rank 3 on b exited with 7", exit_code=7))
    assert (record.reason, record.exit_code) == ("rank 3 on b exited with 7", 7)
    lost = folded(go(), client("lost", 50.0, why="no process of it is left on this machine"))
    assert (lost.reason, lost.exit_code) == ("no process of it is left on this machine", None)


def test_a_missed_goal_is_success_without_a_time_to_train() -> None:
    record = folded(go(), end(), workload={"goal": {"metric": "iou", "at_least": 0.9}})
    assert (record.state, record.time_to_train_s, record.goal) == (
        "succeeded",
        None,
        {"metric": "iou", "at_least": 0.9},
    )


def test_time_to_train_is_counted_from_run_start_where_the_program_tells_it() -> None:
    begin = result(5.0, mllog="run_start", time_ms=5)
    assert folded(go(1.0), begin, event("goal", 8.0)).time_to_train_s == 3.0
    assert folded(go(1.0), begin).results == {}


def test_the_first_hit_counts_in_whatever_order_the_nodes_are_read() -> None:
    later = [result(6.0, rank=2, mllog="run_start"), event("goal", 9.0, (1, 0), metric="loss", value=0.1)]
    earlier = [result(5.0, mllog="run_start"), event("goal", 8.0, metric="loss", value=0.2), result(8.5, loss=0.05)]
    record = folded(go(1.0), *later, *earlier)
    assert (record.time_to_train_s, record.goal_value, record.results) == (3.0, 0.2, {"loss": 0.05})


def test_a_running_run_has_lasted_until_now() -> None:
    assert folded(go(1.0), now=61.0).duration_s == 60.0
    assert folded(go(1.0), now=-5.0).duration_s == 0.0
    assert folded().duration_s is None


def test_the_lowest_rank_of_the_newest_attempt_has_the_last_word() -> None:
    told = [result(3.0, rank=2, loss=2.0), result(4.0, rank=0, loss=0.0), result(5.0, rank=3, loss=3.0)]
    assert folded(*told).results == {"loss": 0.0}
    assert folded(*told, result(6.0, (0, 1), rank=3, loss=9.0)).results == {"loss": 9.0}
    assert folded(result(6.0, (0, 1), rank=3, loss=9.0), *told).results == {"loss": 9.0}


KINDS = st.sampled_from(["go", "ready", "retry", "given_back", "end", "result", "goal", "failed", "pilot", "unknown"])
EPOCHS = st.tuples(st.integers(0, 2), st.integers(0, 2))


@st.composite
def events_of_pilots(draw: st.DrawFn) -> dict[str, Any]:
    kind, e, t = draw(KINDS), draw(EPOCHS), draw(st.floats(0, 100))
    made = {
        "go": lambda: go(t, e),
        "end": lambda: end(t, e, draw(st.sampled_from(["succeeded", "failed", "terminated"]))),
        "result": lambda: result(t, e, draw(st.integers(0, 3)), loss=draw(st.floats(0, 1))),
        "retry": lambda: event("retry", t, e, why="x"),
        "given_back": lambda: event("given_back", t, e, why="y"),
    }
    return made.get(kind, lambda: event(kind, t, e))()


OTHERS = st.sampled_from(
    [
        client("created", 0.0),
        client("submitted", 0.1, handle="7"),
        client("cancel", 3.0),
        client("lost", 5.0, why="gone"),
        client("lost", 500.0, why="gone"),
        engine("succeeded", code=0),
        engine("failed", reason="x"),
        engine("terminated", code=143),
        {"t": START, "k": "node", "node": 0, "restart": 0, "pid": 7},
        {},
        {"k": None},
    ]
)


@given(st.lists(events_of_pilots() | OTHERS, max_size=12))
def test_no_order_of_events_makes_the_fold_raise(events: list[dict[str, Any]]) -> None:
    """Permuted, doubled or cut: what comes out is a record in one of the states, and reading it changes nothing."""
    fold = Fold(asked(), "/x")
    for row in events:
        fold.take(parsed(row))
        record = fold.record(START + 200)
        assert record.state in STATES
        assert (record.state in FINAL) == (record.ended_at is not None)
        assert fold.record(START + 200) == record


@given(st.lists(events_of_pilots(), max_size=8), EPOCHS, st.data())
def test_older_epochs_change_nothing_after_a_newer_beginning(
    before: list[dict[str, Any]], e: tuple[int, int], data: st.DataObject
) -> None:
    newest = (e[0] + 3, e[1])
    own = data.draw(st.lists(st.sampled_from(["ready", "retry", "end", "result"]), max_size=3))
    made = {"ready": event("ready", 2, newest), "retry": event("retry", 3, newest, why="own"), "end": end(9, newest)}
    fold = Fold(asked(), "/x")
    fold.take(parsed(*before, go(50.0, newest), *[made.get(kind, result(4, newest, loss=1.0)) for kind in own]))
    told = fold.record(START + 200)
    fold.take(parsed(*data.draw(st.lists(events_of_pilots(), max_size=8))))
    then = fold.record(START + 200)
    kept = ("state", "reason", "exit_code", "hosts", "ended_at")
    assert [getattr(then, name) for name in kept] == [getattr(told, name) for name in kept]
    if "result" in own:
        assert then.results["loss"] == 1.0


@given(st.lists(events_of_pilots(), max_size=8), st.data())
def test_a_settled_run_changes_only_by_a_newer_attempt(before: list[dict[str, Any]], data: st.DataObject) -> None:
    newest = (9, 9)
    state = data.draw(st.sampled_from(["succeeded", "failed", "terminated"]))
    fold = Fold(asked(), "/x")
    fold.take(parsed(*before, go(50.0, newest), end(60.0, newest, state)))
    told = fold.record(START + 200)
    assert told.state in SETTLED
    again = [go(50.0, newest), event("ready", 70, newest), event("retry", 71, newest, why="z"), result(72, newest, x=1)]
    fold.take(parsed(*data.draw(st.lists(events_of_pilots() | st.sampled_from(again), max_size=8))))
    assert fold.record(START + 200).state == told.state


def test_a_run_that_brings_its_data_says_how_far_it_is() -> None:
    waits = client("waiting", 1.0, why="has its nodes; its pilots are starting")
    brings = [event("staging", 2.0, n=node, bytes=size, of=200) for node, size in ((0, 50), (1, 20), (0, 80))]
    assert folded(*brings, waits).reason == "brings its data to its nodes, 25% of it is there"
    queued = client("waiting", 3.0, why="waits in the queue")
    assert folded(*brings, waits, queued).reason == "waits in the queue"
    assert folded(*brings, go(), waits).reason == ""
