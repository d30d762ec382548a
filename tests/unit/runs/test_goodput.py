"""Every second of a run's nodes is in exactly one class, whatever its events say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.runs import Fold
from podwright.runs.goodput.account import from_json, sum_of
from podwright.runs.goodput.classes import CLASSES, Stretch, cut, scaled
from podwright.runs.goodput.interruptions import mean_time
from podwright.runs.goodput.ledger import GoodputLedger
from podwright.runs.goodput.nodes import Held
from podwright.runs.record import Record
from tests.unit.runs.made import START, asked, end, event, parsed, result

Row = dict[str, Any]


def pilot(t: float, n: int = 0, restart: int = 0) -> Row:
    return event("pilot", t, (restart, 0), n, host=f"h{n}", restart=restart)


def go(t: float, e: tuple[int, int] = (0, 0), nodes: int = 1) -> Row:
    return event("go", t, e, attempt=sum(e) + 1, hosts=[f"h{n}" for n in range(nodes)])


def ready(t: float, e: tuple[int, int] = (0, 0)) -> Row:
    return event("ready", t, e, world_size=1)


def steps(first: float, *numbers: int, every: float = 1.0, e: tuple[int, int] = (0, 0), **more: Any) -> list[Row]:
    return [result(first + at * every, e, step=step, **more) for at, step in enumerate(numbers)]


def tells(t: float, step: int, **spent: float) -> Row:
    """Return a line of a program that says what became of its time."""
    values: Row = {f"spent.{name}": seconds for name, seconds in spent.items()}
    return result(t, step=step, **values)


def record(*rows: Row, now: float = 1000.0, nodes: int = 1, gpus: int = 0, **changes: Any) -> Record:
    workload = {"name": "toy", "resources": {"gpus": gpus}}
    fold = Fold(asked(nodes=nodes, ranks_per_node=1, workload=workload, **changes), "folder")
    fold.take(parsed(*rows))
    return fold.record(START + now)


def classes(made: Record) -> dict[str, float]:
    assert made.goodput is not None
    return {name: seconds for name, seconds in made.goodput["classes"].items() if seconds}


def test_a_run_that_succeeds() -> None:
    made = record(pilot(10), go(12), ready(13), *steps(20, 1, 2, 3, 4), end(25))
    assert classes(made) == {"start": 3, "init": 6, "productive": 4, "teardown": 2}
    assert made.goodput is not None
    assert made.goodput["unit"] == "node_s"
    assert made.goodput["share"] == pytest.approx(4 / 15, abs=1e-4)
    assert made.goodput["ettr"] == pytest.approx(4 / 25, abs=1e-4)
    assert made.goodput["queue_s"] == 10


def test_seconds_are_of_gpus_where_a_run_has_some() -> None:
    made = record(pilot(0), pilot(1, 1), go(2), ready(3), *steps(5, 1, 2), end(7), nodes=2, gpus=8)
    assert made.goodput is not None
    assert made.goodput["unit"] == "gpu_s"
    assert made.goodput["allocated_s"] == (7 + 6) * 8
    assert sum(classes(made).values()) == (7 + 6) * 8


def test_a_spare_is_held_and_productive_only_once_it_trains() -> None:
    """A node whose place it took comes back and waits in its turn."""
    ranks = [event("rank", t, e, n, rank=r) for t, e, n, r in ((3, (0, 0), 0, 0), (3, (0, 0), 1, 1))]
    later = [event("rank", t, e, n, rank=r) for t, e, n, r in ((23, (1, 0), 0, 0), (23, (1, 0), 2, 1))]
    rows = [
        *(pilot(0, n) for n in range(3)),
        go(2, nodes=3),
        *ranks,
        ready(3),
        *steps(10, 1, 2, 3, 4, 5),
        event("retry", 16, why="h1 was silent", lost=1),
        go(22, (1, 0), nodes=3),
        *later,
        ready(23, (1, 0)),
        *steps(30, 6, 7, 8, 9, e=(1, 0)),
        end(40, e=(1, 0)),
    ]
    made = record(*rows, nodes=2, gpus=1, spares=1)
    found = classes(made)
    assert made.goodput is not None
    assert made.goodput["allocated_s"] == 3 * 40
    assert sum(found.values()) == 3 * 40
    assert found["productive"] == 2 * (5 + 4)
    assert found["other"] >= (16 - 2) + (40 - 22), "the spare in the first attempt, the lost node in the second"


def test_what_a_program_says_of_its_time_is_taken_and_the_rest_stays_other() -> None:
    told = [
        tells(10, 0, productive=1.0, compile=3.0),
        tells(20, 5, productive=7.0, compile=3.0, data_wait=2.5),
        result(24, step=5, eval_loss=1.0),
        tells(25, 6, productive=8.0, data_wait=2.5, evaluation=4.0),
    ]
    made = record(pilot(0), go(0), ready(2), *told, end(27))
    # What an evaluation took was told a line later than it ended: it goes where nothing was known of the time.
    assert classes(made) == {
        "start": 2,
        "init": 4,
        "compile": 3,
        "productive": 8,
        "data_wait": 2.5,
        "evaluation": 4,
        "other": 1.5,
        "teardown": 2,
    }
    assert "spent.productive" not in made.results


def test_parts_of_a_mean_step_are_blocked_time_and_an_evaluation_is_declared() -> None:
    rows = [
        *steps(10, 1, 2, 3, input_s=0.25),
        event("result", 12, rank=0, values={"mllog": "eval_start", "time_ms": 1}),
        event("result", 15, rank=0, values={"mllog": "eval_stop", "time_ms": 2}),
        *steps(16, 4, 5, input_s=0.25),
    ]
    made = record(pilot(0), go(0), ready(0), *rows, end(17))
    found = classes(made)
    assert found["evaluation"] == 3
    assert found["data_wait"] == 5 * 0.25
    assert sum(found.values()) == 17


def test_steps_that_are_done_again_are_lost_and_the_retry_recovers() -> None:
    rows = [pilot(0), go(0), ready(1), *steps(3, *range(1, 11))]
    rows += [event("rank_end", 12.5, rank=0, code=1), event("failed", 13, rank=0, node=0), event("retry", 13)]
    again = (0, 1)
    rows += [go(15, again), ready(16, again), *steps(20, *range(6, 12), e=again), end(26, again)]
    made = record(*rows)
    # Steps 6 to 10, and the half step at work when it failed; 1 to 5 and 6 to 11 count.
    assert classes(made) == {
        "start": 2,
        "init": 1 + 3,
        "productive": 5 + 6,
        "lost_work": 5.5,
        "recovery": 2.5,
        "teardown": 1,
    }
    assert made.goodput is not None
    assert made.goodput["interruptions"] == 1


def test_what_a_failed_run_kept_is_in_its_newest_checkpoint() -> None:
    rows = [pilot(0), go(0), ready(1), *steps(3, *range(1, 11))]
    failed = [event("failed", 12, rank=0, node=0), end(13, state="failed")]
    assert classes(record(*rows, *failed))["lost_work"] == 10
    seen = event("checkpoint", 9.5, name="step-00000004.pt", bytes=1, written_at=START + 9)
    assert classes(record(*rows, seen, *failed))["lost_work"] == 6
    seen = event("checkpoint", 9.5, name="model.pt", bytes=1, written_at=START + 9)
    assert classes(record(*rows, seen, *failed))["lost_work"] == 3


def test_steps_since_the_newest_checkpoint_are_at_risk_while_a_run_goes_on() -> None:
    rows = [pilot(0), go(0), ready(1), *steps(3, *range(1, 11))]
    rows += [event("checkpoint", 9.5, name="model.pt", bytes=1, written_at=START + 9)]
    made = record(*rows, now=12)
    assert made.goodput is not None
    assert made.goodput["at_risk_s"] == 3
    assert classes(made) == {"start": 1, "init": 1, "productive": 10}


def test_a_hang_is_counted_back_from_the_last_step() -> None:
    rows = [pilot(0), go(0), ready(1), *steps(3, *range(1, 11))]
    rows += [event("checkpoint", 12, name="step-10.pt", bytes=1)]
    rows += [event("hang", 100, rank=0, node=0, silent_s=88), end(101, state="failed")]
    found = classes(record(*rows))
    assert found["hang"] == 88
    assert found["productive"] == 10
    assert found["teardown"] == 1
    # As long as five of its tellings nothing is a hang yet.
    slow = [pilot(0), go(0), ready(1), *steps(60, 1, 2, 3, every=60), event("hang", 400, rank=0, node=0, silent_s=1)]
    assert "hang" not in classes(record(*slow, end(401, state="failed")))


def test_of_a_lost_node_its_time_until_it_was_missed_counts_and_the_others_recover() -> None:
    rows = [pilot(0), pilot(0, 1), go(2), ready(3), *steps(5, *range(1, 11))]
    rows += [event("retry", 24, lost=1, why="h1 was silent for 10 s")]
    later = (1, 0)
    rows += [pilot(30, 1, 1), go(32, later), ready(33, later), *steps(36, *range(11, 16), e=later), end(41, later)]
    made = record(*rows, nodes=2)
    found = classes(made)
    # Node 0 was held for 41 s, node 1 until 24 s and from 30 s on.
    assert sum(found.values()) == 41 + 24 + 11
    assert found["lost_work"] == 2 * 1
    assert found["recovery"] == 2 * 9 + 8
    assert found["start"] == 3 + 3 + 1 + 2 + 1
    assert found["productive"] == 2 * (10 + 5)


def test_a_run_that_waits_in_the_queue_again_is_given_nothing_meanwhile() -> None:
    rows = [pilot(0), go(2), ready(3), *steps(5, 1, 2, 3, 4), event("given_back", 9, why="yields")]
    made = record(*rows, now=500)
    assert made.state == "pending"
    assert sum(classes(made).values()) == 9
    assert made.goodput is not None
    assert made.goodput["queue_s"] == 491


def test_a_run_that_tells_nothing_is_other() -> None:
    made = record(pilot(0), go(2), ready(3), end(10))
    assert classes(made) == {"start": 3, "other": 7}
    assert record(now=5).goodput is None


def test_points_add_up_and_a_record_is_read_again() -> None:
    one = record(pilot(0), go(2), ready(3), *steps(5, 1, 2), end(10))
    whole = sum_of(filter(None, [from_json(one.goodput), from_json(one.goodput)]))
    assert whole is not None
    assert one.goodput is not None
    assert whole.as_json()["classes"]["productive"] == 2 * one.goodput["classes"]["productive"]
    assert whole.as_json()["share"] == one.goodput["share"]
    assert from_json({"unit": "gpu_s", "classes": {"bogus": 1}}) is None
    assert from_json("no object") is None


def test_no_mean_time_is_said_below_three_interruptions() -> None:
    assert mean_time(1000, 2) is None
    told = mean_time(1000, 3)
    assert told is not None
    mean, (low, high) = told
    # Published limits of the mean of a Poisson law for 3 events, 5 % on each side: 0.818 and 7.754.
    assert mean == pytest.approx(333.3, abs=0.1)
    assert low == pytest.approx(1000 / 7.754, rel=1e-3)
    assert high == pytest.approx(1000 / 0.818, rel=1e-3)


MOMENTS = st.floats(0, 500).map(lambda value: round(value, 3))
EPOCHS = st.tuples(st.integers(0, 2), st.integers(0, 2))
KINDS = st.sampled_from(
    [
        "pilot",
        "go",
        "ready",
        "rank_end",
        "failed",
        "hang",
        "retry",
        "given_back",
        "signal",
        "alone",
        "checkpoint",
        "end",
    ]
)


FIELDS: dict[str, Row] = {"go": {"hosts": ["a", "b"]}, "rank_end": {"rank": 0, "code": 1}, "end": {"state": "failed"}}


@st.composite
def any_events(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    for _ in range(draw(st.integers(0, 30))):
        kind, t, e, n = draw(KINDS), draw(MOMENTS), draw(EPOCHS), draw(st.integers(0, 2))
        rows.append(event(kind, t, e, n, **FIELDS.get(kind, {"lost": draw(st.sampled_from([None, 1]))})))
    for _ in range(draw(st.integers(0, 20))):
        values: Row = {"step": draw(st.one_of(st.integers(0, 30), st.floats(-1e308, 1e308)))}
        seconds = st.one_of(st.floats(0, 300), st.floats(-1e308, 1e308))
        values[draw(st.sampled_from(["input_s", "spent.productive"]))] = draw(seconds)
        rows.append(result(draw(MOMENTS), draw(EPOCHS), draw(st.integers(0, 2)), **values))
    return rows


@given(any_events(), st.sampled_from(["running", "succeeded", "failed", "cancelled"]), MOMENTS)
def test_classes_sum_to_all_that_nodes_were_held(rows: list[Row], state: str, until: float) -> None:
    ledger = GoodputLedger(START, 2, 16)
    for one in parsed(*rows):
        ledger.take(one)
    found = ledger.goodput(START + until, state)
    times = ledger.held_times(START + until, state)
    whole = sum(time.end - time.begin for time in times) * 8
    assert all(isinstance(time, Held) and time.end >= time.begin for time in times)
    if found is None:
        assert whole == 0
        return
    assert found.allocated == whole
    assert all(value >= 0 for value in found.classes.values())
    assert found.classes.keys() <= set(CLASSES)
    assert 0 <= found.at_risk <= found.classes.get("productive", 0)
    again = from_json(found.as_json())
    assert again is not None
    assert again.allocated == whole


@given(st.dictionaries(st.sampled_from(CLASSES), st.integers(0, 10_000)), st.integers(0, 50_000), st.data())
def test_parts_stay_whole_when_they_are_scaled_and_cut(parts: dict[str, int], length: int, data: st.DataObject) -> None:
    shared = scaled(parts, length)
    assert sum(shared.values()) == length
    stretch = Stretch(7, 7 + length, shared)
    middle = data.draw(st.integers(7, 7 + length))
    early = cut(stretch, 7, middle)
    assert sum(early.parts.values()) == middle - 7
    assert all(value <= shared[name] for name, value in early.parts.items())
