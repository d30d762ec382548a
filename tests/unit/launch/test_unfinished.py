"""Submissions that broke off in the middle: whoever looks next finishes them, part by part."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.engines.base import Status, Unfinished
from podwright.launch import Session, find, start
from podwright.runs import Home
from podwright.spec.problems import Refusal, refuse
from tests.fixtures.fake_engine import FakeEngine
from tests.fixtures.launching import Load
from tests.unit.launch.test_follow import add, another, notes, state

HALF_MADE = Status("waiting", "is being submitted", unfinished=True)
NEVER_MADE = Status("gone", "it was never submitted", unfinished=True)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def session(home: Home, engine: FakeEngine) -> Session:
    return Session(home, engines={"local": lambda: engine})


@pytest.mark.parametrize("found", [HALF_MADE, NEVER_MADE])
def test_a_run_that_is_half_made_is_submitted_again(
    home: Home, session: Session, engine: FakeEngine, found: Status
) -> None:
    engine.says = found
    folder = add(home)
    assert state(session) == "pending"
    assert (engine.submitted, engine.again) == ([["toy-2222"]], [True])
    assert notes(folder) == ["submitted"]


def test_of_a_sweep_only_what_is_not_there_is_submitted_again(home: Home, session: Session, engine: FakeEngine) -> None:
    """The first points may be at work already when a client looks."""
    add(home, "sweep-2222", points=3)
    ids = [f"sweep-2222-{number}" for number in (1, 2, 3)]
    folders = [add(home, run_id, parent="sweep-2222", index=index) for index, run_id in enumerate(ids)]
    engine.says_of = {ids[0]: Status("there", handle="7"), ids[1]: HALF_MADE, ids[2]: NEVER_MADE}
    assert state(session, "sweep-2222") == "pending"
    assert engine.submitted == [ids[1:]]
    assert [notes(folder) for folder in folders] == [["submitted"]] * 3


def test_a_run_that_is_half_made_and_cancelled_is_removed(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = HALF_MADE
    folder = add(home)
    (folder / "client.jsonl").write_text('{"t": 1.0, "k": "cancel"}\n')
    assert state(session) == "pending"
    assert (engine.submitted, engine.cleaned) == ([], ["toy-2222"])
    engine.says = Status("gone", "was cancelled", "cancelled")
    assert state(session) == "cancelled"
    assert engine.submitted == []


def test_one_that_was_forgotten_long_ago_is_removed_and_lost(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = HALF_MADE
    add(home, age_s=3600.0)
    assert state(session) == "lost"
    assert (engine.submitted, engine.cleaned) == ([], ["toy-2222"])


def test_a_target_that_goes_away_meanwhile_leaves_a_run_for_the_next_look(
    home: Home, session: Session, engine: FakeEngine, load: Load
) -> None:
    def break_off() -> None:
        engine.on_submit = lambda: None
        raise Unfinished(refuse("the cluster is away").problems, 3)

    engine.on_submit = break_off
    with pytest.raises(Refusal) as caught:
        start(session, load("command: 'true'"))
    run_id = session.home.resolve("last")
    assert caught.value.exit_code == 3
    assert f"`podwright wait {run_id}` submits the rest once it answers again" in str(caught.value)
    engine.says = HALF_MADE
    record = find(another(session), run_id).record()
    assert (record.state, engine.submitted) == ("pending", [[run_id]])
