"""Runs that come after another, on an engine that holds them: whoever looks releases or ends them."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright import launch
from podwright.engines.base import Status
from podwright.launch import Session
from podwright.runs import Home, Record, RunFolder
from podwright.spec.problems import refuse
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.runs.made import asked, end, go, write_lines

HELD = Status("waiting", "waits for first-2222 to succeed", held_for="first-2222")


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Two runs, of which the second comes after the first and is held."""
    home = Home.open(tmp_path / "home")
    for run_id, after in (("first-2222", None), ("second-3333", "first-2222")):
        folder = home.create(asked(run_id, after=after), {}, {})
        write_lines(folder.path / "client.jsonl", {"t": 0, "k": "submitted", "handle": run_id})
    return home


@pytest.fixture
def session(home: Home, engine: FakeEngine) -> Session:
    engine.says_of = {"first-2222": Status("there"), "second-3333": HELD}
    return Session(home, engines={"local": lambda: engine})


def first_ends(home: Home, state: str) -> None:
    record = home.folder("first-2222").record_path
    write_lines(record / "n0.r0" / "events.jsonl", go(0.0), end(10.0, state=state))


def second(session: Session) -> Record:
    return launch.find(session, "second-3333").record()


def test_it_waits_while_the_other_runs_and_says_so(session: Session, engine: FakeEngine) -> None:
    record = second(session)
    assert (record.state, record.reason) == ("pending", "waits for first-2222 to succeed")
    assert (engine.released, engine.cancelled) == ([], [])
    assert launch.is_held(launch.find(session, "second-3333"))
    assert not launch.is_held(launch.find(session, "first-2222"))


def test_it_is_released_once_the_other_has_succeeded(home: Home, session: Session, engine: FakeEngine) -> None:
    first_ends(home, "succeeded")
    assert second(session).state == "pending"
    assert (engine.released, engine.cancelled) == (["second-3333"], [])


@pytest.mark.parametrize("how", ["failed", "terminated"])
def test_it_is_ended_when_the_other_has_not_succeeded(
    home: Home, session: Session, engine: FakeEngine, how: str
) -> None:
    first_ends(home, how)
    engine.says_of["first-2222"] = Status("gone", "", "failed" if how == "failed" else "cancelled")
    record = second(session)
    assert (record.state, record.attempts) == ("failed", 0)
    assert record.reason == "first-2222, which it comes after, did not succeed"
    assert (engine.released, engine.cancelled) == ([], ["second-3333"])


def test_it_is_ended_when_the_other_was_removed(home: Home, session: Session, engine: FakeEngine) -> None:
    home.remove("first-2222")
    record = second(session)
    assert (record.state, record.reason) == ("failed", "first-2222, which it comes after, was removed")
    assert engine.cancelled == ["second-3333"]


def test_a_client_that_died_between_the_record_and_the_engine_is_made_good(
    home: Home, session: Session, engine: FakeEngine
) -> None:
    end_of_it = {"t": 1.0, "k": "end", "state": "failed", "reason": "did not succeed", "code": None}
    write_lines(home.folder("second-3333").path / "client.jsonl", end_of_it)
    assert second(session).state == "failed"
    assert engine.cancelled == ["second-3333"]


def test_one_that_cannot_be_released_waits_on_and_says_why(home: Home) -> None:
    class Refusing(FakeEngine):
        def release(self, folders: object) -> None:
            raise refuse("Kubernetes did not release the run: you may not patch jobs")

    engine = Refusing()
    engine.says_of = {"first-2222": Status("there"), "second-3333": HELD}
    first_ends(home, "succeeded")
    record = second(Session(home, engines={"local": lambda: engine}))
    assert record.state == "pending"
    assert record.reason == "waits to be released: Kubernetes did not release the run: you may not patch jobs"


def test_what_somebody_else_holds_is_left_to_them(home: Home, session: Session, engine: FakeEngine) -> None:
    """Only a run that was asked to come after another is released or ended by us."""
    folder: RunFolder = home.create(asked("other-4444"), {}, {})
    write_lines(folder.path / "client.jsonl", {"t": 0, "k": "submitted", "handle": "other-4444"})
    engine.says_of["other-4444"] = Status("waiting", "waits for elsewhere-5555 to succeed", held_for="elsewhere-5555")
    assert launch.find(session, "other-4444").record().state == "pending"
    assert (engine.released, engine.cancelled) == ([], [])
