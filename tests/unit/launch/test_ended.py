"""Runs that have ended and whose job has not: it is ended by whoever looks, once the record is in."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.engines.base import Status
from podwright.launch import Session, find
from podwright.runs import Home
from tests.fixtures.clock import Clock
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.launch.test_follow import add, notes
from tests.unit.runs.made import START, end, go, write_lines


@pytest.fixture
def engine() -> FakeEngine:
    made = FakeEngine()
    made.says = Status("there", handle="7")
    return made


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


def look(home: Home, engine: FakeEngine, after_s: float) -> str:
    """The state that a client finds so many seconds after the end."""
    session = Session(home, engines={"local": lambda: engine}, clock=Clock(START + 9.0 + after_s))
    return find(session, "toy-2222").record().state


def ended(home: Home, *closed: int, state: str = "succeeded") -> Path:
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": START, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), end(9.0, state=state))
    (folder / "record" / "n1.r0").mkdir()
    for node in closed:
        (folder / "record" / f"n{node}.r0" / "closed").touch()
    return folder


@pytest.mark.parametrize(
    ("closed", "after_s", "cleaned"),
    [((0, 1), 5.0, 0), ((0, 1), 16.0, 1), ((0,), 16.0, 0), ((0,), 61.0, 1), ((), 61.0, 1)],
)
def test_the_job_of_a_run_that_has_ended_is_ended_once_its_record_is_in(
    home: Home, engine: FakeEngine, closed: tuple[int, ...], after_s: float, cleaned: int
) -> None:
    folder = ended(home, *closed)
    assert look(home, engine, after_s) == "succeeded"
    assert engine.cleaned == ["toy-2222"] * cleaned
    assert not (folder / "record.json").exists()
    engine.says = Status("gone")
    assert look(home, engine, after_s) == "succeeded"
    assert (folder / "record.json").exists()


def test_a_run_whose_pilots_were_stopped_has_not_ended(home: Home, engine: FakeEngine) -> None:
    ended(home, 0, 1, state="terminated")
    assert look(home, engine, 600.0) == "running"
    assert engine.cleaned == []


def test_an_engine_whose_runs_end_with_their_processes_is_left_alone(home: Home, engine: FakeEngine) -> None:
    engine.remains = False
    ended(home, 0, 1)
    look(home, engine, 600.0)
    assert engine.cleaned == []


def test_a_run_that_has_its_nodes_does_not_wait_in_the_queue(home: Home, engine: FakeEngine) -> None:
    folder = add(home)
    session = Session(home, engines={"local": lambda: engine})
    run = find(session, "toy-2222")
    engine.says = Status("waiting", "waits behind jobs of higher priority", handle="7")
    assert run.record().reason == "waits behind jobs of higher priority"
    engine.says = Status("there", handle="7")
    assert [run.record().reason, run.record().reason] == ["has its nodes; its pilots are starting"] * 2
    assert notes(folder).count("waiting") == 2


def test_a_run_that_was_cancelled_while_it_waited_is_not_lost(home: Home, engine: FakeEngine) -> None:
    """Slurm forgets the tasks of an array at once that it removes together."""
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": START, "k": "submitted", "handle": "7"}, {"t": START, "k": "cancel"})
    engine.says = Status("gone", "Slurm does not know it any more")
    record = find(Session(home, engines={"local": lambda: engine}), "toy-2222").record()
    assert (record.state, record.reason) == ("cancelled", "was cancelled before it began")
