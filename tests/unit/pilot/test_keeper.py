"""The keeper: whom a run that comes after another waits for."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.keeper.kept_run import STOPPED, wait_for


class Turns:
    """A loop that lets the test act at each turn."""

    def __init__(self, *acts: Any) -> None:
        self._acts = list(acts)

    def turn(self, limit_s: float) -> set[int]:
        assert self._acts, "it waits for something that never comes"
        return self._acts.pop(0)() or set()


class Waiting:
    is_cancelled = False


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def wait(folder: Path, *acts: Any, waiting: Waiting | None = None) -> Any:
    return wait_for(str(folder), [waiting or Waiting()], Turns(*acts))  # type: ignore[list-item, arg-type]


FAILED = {"state": "failed", "reason": "toy-2222, which it comes after, did not succeed", "code": None}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "toy-2222"
    write(folder / "run.json", {"points": 0})
    return folder


def test_a_run_that_succeeds_is_waited_for(run: Path) -> None:
    ended = {"k": "end", "state": "succeeded", "code": 0}
    assert wait(run, lambda: None, lambda: write(run / "engine.jsonl", ended)) is None


@pytest.mark.parametrize("state", ["failed", "terminated"])
def test_a_run_that_does_not_succeed_ends_those_after_it(run: Path, state: str) -> None:
    write(run / "engine.jsonl", {"k": "node"}, {"k": "end", "state": state, "code": 1})
    assert wait(run) == FAILED


def test_all_points_of_a_parent_are_waited_for(tmp_path: Path) -> None:
    run = tmp_path / "toy-2222"
    write(run / "run.json", {"points": 2})
    good, bad = {"k": "end", "state": "succeeded", "code": 0}, {"k": "end", "state": "failed", "code": 1}
    first, second = tmp_path / "toy-2222-1" / "engine.jsonl", tmp_path / "toy-2222-2" / "engine.jsonl"
    write(first, good)
    assert wait(run, lambda: write(second, good)) is None
    write(tmp_path / "toy-3333" / "run.json", {"points": 2})
    write(tmp_path / "toy-3333-1" / "engine.jsonl", bad)
    other = wait(tmp_path / "toy-3333", lambda: write(tmp_path / "toy-3333-2" / "engine.jsonl", good))
    assert other["state"] == "failed"


def test_the_pilots_tell_when_the_keeper_died(run: Path) -> None:
    events = run / "record" / "n0.r1" / "events.jsonl"
    assert wait(run, lambda: write(events, {"k": "end", "state": "succeeded", "exit_code": 0})) is None


def test_a_run_that_is_lost_is_not_waited_for(run: Path) -> None:
    assert wait(run, lambda: write(run / "client.jsonl", {"k": "lost", "why": "gone"})) == FAILED


def test_a_signal_or_a_cancelled_run_ends_the_waiting(run: Path) -> None:
    assert wait(run, lambda: {signal.SIGTERM}) == STOPPED
    cancelled = Waiting()
    cancelled.is_cancelled = True
    assert wait(run, lambda: None, waiting=cancelled) == STOPPED
