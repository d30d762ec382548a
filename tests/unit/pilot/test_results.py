"""What ranks tell: all of it in their series within a bound, the last values of each second as events."""

from __future__ import annotations

import json
import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.protocol import rows_of, series_name
from podwright.pilot.ranks.guesses import Recogniser
from podwright.pilot.ranks.results import MAX_NAMES, Results
from podwright.pilot.system.journal import Journal

START = 1_700_000_000.0
GOAL = {"metric": "loss", "at_most": 0.5}


class Told:
    """A node's record and a clock that the test sets."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder, self.t = folder, 0.0
        self.journal = Journal(str(folder / "events.jsonl"), 0, self)
        self.results = Results(str(folder), GOAL, self.journal, Recogniser({}, guesses=False), **options)
        self.hits: list[float] = []
        self.results.on_hit = self.hits.append

    def now(self) -> float:
        return START + self.t

    def tell(self, t: float, rank: int = 0, **values: Any) -> None:
        self.t = t
        self.results.take(rank, values)

    def events(self, kind: str = "result") -> list[dict[str, Any]]:
        return [row for row in rows_of(str(self.folder / "events.jsonl")) if row["k"] == kind]

    def values(self) -> list[tuple[float, dict[str, Any]]]:
        return [(round(row["t"] - START, 3), row["values"]) for row in self.events()]

    def series(self, rank: int = 0) -> list[dict[str, Any]]:
        return list(rows_of(str(self.folder / series_name(rank))))


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_the_first_value_is_an_event_at_once_and_then_the_last_of_each_second(told: Told) -> None:
    for i in range(30):
        told.tell(i / 10, step=i)
    assert told.values() == [(0.0, {"step": 0}), (1.0, {"step": 10}), (2.0, {"step": 20})]
    assert [row.get("of") for row in told.events()] == [None, 10, 10]
    told.results.end(0)
    assert told.values()[-1] == (2.9, {"step": 29})
    assert [row["v"]["step"] for row in told.series()] == list(range(30))


def test_every_name_told_in_a_second_is_in_its_event(told: Told) -> None:
    told.tell(0.0, step=1)
    told.tell(0.2, mean_iou=0.5)
    told.tell(0.4, step=2)
    told.t = 1.0
    told.results.tick()
    assert told.values()[-1] == (0.4, {"mean_iou": 0.5, "step": 2})


def test_each_rank_has_its_own_second_and_its_own_file(told: Told) -> None:
    told.tell(0.0, rank=0, step=1)
    told.tell(0.1, rank=3, step=1)
    told.results.close()
    assert [(row["rank"], row["values"]) for row in told.events()] == [(0, {"step": 1}), (3, {"step": 1})]
    assert (len(told.series(0)), len(told.series(3))) == (1, 1)


def test_mllog_is_an_event_at_once_and_what_was_held_does_not_come_after_it(told: Told) -> None:
    told.tell(0.0, step=1)
    told.tell(0.1, step=2, accuracy=0.1)
    told.tell(0.2, mllog="eval_accuracy", accuracy=0.7)
    told.tell(0.3, mllog="run_stop")
    told.results.end(0)
    assert [row["values"] for row in told.events()] == [
        {"step": 1},
        {"mllog": "eval_accuracy", "accuracy": 0.7},
        {"mllog": "run_stop"},
        {"step": 2},
    ]
    assert [row["v"] for row in told.series()] == [{"step": 1}, {"step": 2, "accuracy": 0.1}, {"accuracy": 0.7}]


def test_the_first_hit_of_the_goal_is_an_event_at_once_and_the_value_that_met_it(told: Told) -> None:
    for i, loss in enumerate((2.0, 0.9, 0.5, 0.1, 0.4)):
        told.tell(i / 10, loss=loss)
    assert told.hits == [0.5]
    assert told.values() == [(0.0, {"loss": 2.0}), (0.2, {"loss": 0.5})]
    told.results.begin_attempt()
    told.tell(0.6, loss=0.2)
    assert told.hits == [0.5, 0.2]


def test_a_number_that_is_called_mllog_is_no_mllog_event(told: Told) -> None:
    for i in range(100):
        told.tell(i / 1000, mllog=i, step=i)
    assert len(told.events()) == 1


def test_towards_its_bound_a_series_has_fewer_lines_and_says_how_many_each_stands_for(tmp_path: Path) -> None:
    told = Told(tmp_path, limit_bytes=40_000)
    for i in range(20_000):
        told.tell(i / 100, step=i)
    told.results.end(0)
    rows = told.series()
    assert (tmp_path / series_name(0)).stat().st_size <= 40_000
    assert sum(row.get("of", 1) for row in rows) == 20_000
    whole = [row["v"]["step"] for row in rows if "of" not in row]
    assert whole == list(range(len(whole))), "as long as there is room, every line is kept"
    times = [row["t"] - START for row in rows[len(whole) :]]
    assert min(b - a for a, b in pairwise(times[1:-1])) >= 1.0
    assert rows[-1]["v"] == {"step": 19_999}
    told.results.close()
    texts = [row["text"] for row in told.events("thinned")]
    assert texts[0] == "rank 0 reports more than its series can hold: it has a line every 1 s from here on"
    assert texts[-1] == f"rank 0 reported 20000 lines, and its series has {len(rows)} of them"


def test_a_series_never_outgrows_its_bound(tmp_path: Path) -> None:
    told, chance = Told(tmp_path, limit_bytes=5_000), random.Random(4)
    for i in range(2_000):
        told.tell(i * 60.0, step=i, loss=chance.random())
    told.results.close()
    assert (tmp_path / series_name(0)).stat().st_size <= 5_000
    assert "2000 lines" in told.events("thinned")[-1]["text"]


def test_names_without_end_are_bounded_and_it_is_said_once(told: Told) -> None:
    for i in range(3 * MAX_NAMES):
        told.tell(i / 1e6, **{f"loss_{i}": 1.0, "x" * 300: 2.0})
    told.results.end(0)
    names = {name for _, values in told.values() for name in values}
    assert len(names) == MAX_NAMES
    assert len(told.events("thinned")) == 1


def test_a_line_of_many_values_is_no_line_of_the_series(told: Told) -> None:
    told.tell(0.0, **{f"{i:03d}{'y' * 100}": 1.0 for i in range(900)})
    told.tell(0.1, step=1)
    told.results.close()
    assert [row["v"] for row in told.series()] == [{"step": 1}]
    assert "reported 2 lines, and its series has 1 of them" in told.events("thinned")[-1]["text"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_lies_in_the_way_of_a_series_holds_nobody_up(tmp_path: Path, make: Any) -> None:
    make(tmp_path / series_name(0))
    told = Told(tmp_path)
    told.tell(0.0, step=1)
    told.results.close()
    assert told.values() == [(0.0, {"step": 1})]
    assert "its series has 0 of them" in told.events("thinned")[-1]["text"]


def test_a_series_that_is_there_goes_on_after_a_torn_line(tmp_path: Path) -> None:
    (tmp_path / series_name(0)).write_text(json.dumps({"t": 1, "e": [0, 0], "v": {}}) + '\n{"t":')
    told = Told(tmp_path)
    told.tell(0.0, step=1)
    told.results.close()
    assert [row["v"] for row in told.series()] == [{}, {"step": 1}]
