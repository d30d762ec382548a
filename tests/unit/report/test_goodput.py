"""The section on goodput: whole, of a run that goes on, and of one that was given nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from podwright.analysis.data import ReportData
from podwright.analysis.ranks import story_of
from podwright.analysis.straggler import Straggler
from podwright.reading.run_data import gather
from podwright.report import render_run
from podwright.report.goodput import BINS, MAX_LANES, goodput_view
from podwright.runs.goodput import AttemptLane
from podwright.runs.goodput.classes import Stretch
from tests.unit.report.made import made

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "goodput"
LIVE_AT = 1e10


def recorded(name: str, now: float = LIVE_AT) -> ReportData:
    return gather(RECORDED / name, now)


def test_the_bar_is_all_time_and_each_attempt_has_a_lane() -> None:
    view = goodput_view(story_of(recorded("retried")))
    assert view is not None
    assert sum(piece.width for piece in view["bar"]) == pytest.approx(100, abs=0.1)
    assert [lane.label for lane in view["lanes"]] == ["attempt 1", "attempt 2"]
    assert view["lanes"][0].note == "ended by rank_end"
    for lane in view["lanes"]:
        assert all(0 <= piece.top <= 28 and piece.top + piece.height <= 28.1 for piece in lane.pieces)
        rights = [piece.left + piece.width for piece in lane.pieces]
        assert max(rights) <= 100.001
    assert view["currency"] is None
    assert (view["live"], view["at_risk"], view["straggler"]) == (False, None, None)


def test_classes_have_their_part_of_the_cost() -> None:
    data = recorded("retried")
    cost = {"amount": 100.0, "currency": "EUR", "origin": "modelled"}
    slow = Straggler(3, "b", 0.3, "1.3 s of own work in a step, 1 s in the middle of the others, 3 times in a row")
    data = replace(data, record=replace(data.record, cost=cost), straggler=slow)
    view = goodput_view(story_of(data))
    assert view is not None
    assert sum(row.cost for row in view["rows"]) == pytest.approx(100)
    page = render_run(data)
    assert '<th scope="col" class="num">EUR</th>' in page
    assert "Slow: rank 3 on b is slower by 30%" in page


def test_what_is_at_risk_is_hatched_while_a_run_goes_on() -> None:
    events = [event for event in recorded("live").events if event.kind == "result"]
    assert events == [], "a page holds no results as events"
    last = max(event.time for event in recorded("live").events)
    data = recorded("live", last + 1)
    view = goodput_view(story_of(data))
    assert view is not None
    assert view["live"]
    assert view["at_risk"] is not None
    assert "in no checkpoint yet" in render_run(data)


def test_nothing_was_given() -> None:
    waits = made({"id": "x"}, read_at=5.0)
    assert goodput_view(story_of(waits)) is None
    assert "Nothing is allocated to this run yet." in render_run(waits)
    over = made({"id": "x", "state": "cancelled", "ended_at": "1970-01-01T00:00:09Z"}, read_at=5.0)
    assert "Nothing was allocated to this run." in render_run(over)


def test_many_attempts_and_steps_stay_a_small_drawing() -> None:
    data = recorded("succeeded")
    assert data.goodput is not None
    first = data.goodput.lanes[0]
    begin, end = first.stretches[0].begin, first.stretches[-1].end
    thin = tuple(Stretch(at, at + 1, {"productive" if at % 2 else "data_wait": 1}) for at in range(begin, end))
    lanes = tuple(AttemptLane(number, thin, 0, "failed") for number in range(MAX_LANES + 5))
    view = goodput_view(story_of(replace(data, goodput=replace(data.goodput, lanes=lanes))))
    assert view is not None
    assert view["left_out"] == 5
    assert all(len(lane.pieces) <= 2 * (BINS + 2) for lane in view["lanes"])
