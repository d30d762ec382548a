"""Runs that have ended and that their engine keeps all the same: whoever looks removes them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from podwright.engines.base import Status
from podwright.launch import Session
from podwright.runs import Home
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.launch.test_follow import add, state
from tests.unit.runs.made import end, go, write_lines


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def session(home: Home, engine: FakeEngine) -> Session:
    return Session(home, engines={"local": lambda: engine})


def ended(home: Home, ago_s: float) -> Path:
    folder = add(home, age_s=ago_s + 10)
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), {**end(), "t": time.time() - ago_s})
    return folder


@pytest.mark.parametrize(
    ("says", "ago_s", "cleaned"),
    [
        (Status("there"), 5.0, False),
        (Status("there"), 90.0, True),
        (Status("waiting", "waits for its nodes"), 5.0, False),  # what the engine said last may be older than the end
        (Status("waiting", "waits for its nodes"), 20.0, True),
        (Status("there", silent="connection refused"), 90.0, False),
    ],
)
def test_what_lingers_is_removed_once_its_record_is_in(
    home: Home, session: Session, engine: FakeEngine, says: Status, ago_s: float, cleaned: bool
) -> None:
    engine.says = says
    folder = ended(home, ago_s)
    assert state(session) == "succeeded"
    assert engine.cleaned == ["toy-2222"] * cleaned
    assert not (folder / "record.json").exists()
    engine.says = Status("gone")
    assert state(session) == "succeeded"
    assert (folder / "record.json").exists()
