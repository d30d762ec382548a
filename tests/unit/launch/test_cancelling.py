"""Cancelling returns when the target has taken it: a sweep of many points is not watched point by point."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright import launch
from podwright.engines.base import Status
from podwright.launch import Session
from podwright.launch.ending import MOMENT_S
from podwright.runs import Home
from tests.fixtures.clock import Clock
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.runs.made import asked, go, write_lines


class Fast(Clock):
    """A clock on which every rest lasts longer than anybody looks on."""

    def sleep(self, seconds: float) -> None:
        super().sleep(MOMENT_S + seconds)


@pytest.mark.parametrize(("points", "remains", "rests"), [(3, True, 0), (3, False, 1), (0, True, 1)])
def test_how_long_a_cancel_looks_on(tmp_path: Path, points: int, remains: bool, rests: int) -> None:
    home, engine, clock = Home.open(tmp_path / "home"), FakeEngine(), Fast()
    engine.says, engine.remains = Status("there", handle="7"), remains
    home.create(asked("toy-2222", points=points), {}, {})
    parts = [f"toy-2222-{index + 1}" for index in range(points)]
    for index, part in enumerate(parts):
        home.create(asked(part, parent="toy-2222", index=index), {}, {})
    for run_id in parts or ["toy-2222"]:
        write_lines(home.runs / run_id / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
        write_lines(home.runs / run_id / "record" / "n0.r0" / "events.jsonl", go())
    session = Session(home, engines={"local": lambda: engine}, clock=clock)
    [cancelled] = launch.cancel_named(session, ["toy-2222"])
    assert (cancelled.record.is_final, cancelled.was_over, len(clock.rests)) == (False, False, rests)
    assert sorted(engine.cancelled) == (parts or ["toy-2222"])
