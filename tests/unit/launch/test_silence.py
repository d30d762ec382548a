"""Targets that do not answer: what is known stays, with the moment since when nobody could ask."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.engines.base import Status
from podwright.launch import Session, find
from podwright.runs import Home
from podwright.spec.problems import Refusal, refuse
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.launch.test_follow import add, notes
from tests.unit.runs.made import go, write_lines

SILENT = Status("there", silent="connection refused")


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def session(home: Home, engine: FakeEngine) -> Session:
    return Session(home, engines={"local": lambda: engine})


def test_silence_is_noted_once_and_so_is_its_end(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = SILENT
    folder = add(home)
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go())
    run = find(session, "toy-2222")
    first, second = run.record(), run.record()
    assert (first.state, first.silent_why) == ("starting", "connection refused")
    assert first.silent_since is not None
    assert second.silent_since == first.silent_since == run.last_known().silent_since
    engine.says = Status("there")
    assert run.record().silent_since is None
    assert notes(folder) == ["silent", "answered"]


def test_an_engine_that_cannot_be_asked_is_as_silent_as_its_target(
    home: Home, session: Session, engine: FakeEngine
) -> None:
    def no_login() -> None:
        raise refuse("there is no kubeconfig at /nowhere", exit_code=3)

    engine.on_status = no_login
    add(home)
    record = find(session, "toy-2222").record()
    assert (record.state, record.silent_why) == ("pending", "there is no kubeconfig at /nowhere")


def test_nothing_is_lost_or_submitted_for_silence(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = SILENT
    folder = add(home, age_s=3600.0)
    assert find(session, "toy-2222").record().state == "pending"
    assert (engine.submitted, engine.cleaned, notes(folder)) == ([], [], ["silent"])


def test_whoever_is_not_patient_leaves_with_the_reason(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = SILENT
    add(home)
    run = find(session, "toy-2222")
    with pytest.raises(Refusal, match=r"local has not answered since .*Z: connection refused") as caught:
        run.wait(patient=False)
    assert caught.value.exit_code == 3
    with pytest.raises(Refusal, match="has not answered since"):
        next(run.watch(patient=False))
