"""The order of a suite's effects, with an engine made by hand: what is noted before what is started, and how often."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from podwright.engines.base import Job, Request, Status
from podwright.launch import Session
from podwright.prove import SuiteFolder, SuitePlan, TrialEnded, plan_suite, run_suite
from podwright.runs import Home, RunFolder
from tests.fixtures.clock import Clock
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.runs.made import START, end, go, write_lines


class Killed(BaseException):
    """What ends a client where it is."""


class QuickEngine(FakeEngine):
    """Its runs end as they are submitted, one of a cell that is named `bad` badly; it sees what was noted before."""

    def __init__(self, journal: Path) -> None:
        super().__init__()
        self.journal, self.says = journal, Status("gone")
        self.noted: list[str] = []
        self.dies: Callable[[str], bool] = lambda moment: False

    def plan(self, request: Request, facts: None) -> Job:
        self.noted.append(json.loads(self.journal.read_text().splitlines()[-1])["run"])
        if self.dies("before it is made"):
            raise Killed
        return super().plan(request, facts)

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        if self.dies("before it is started"):
            raise Killed
        handle = super().submit(run_id, folders, again)
        state = "failed" if "bad" in run_id else "succeeded"
        shift = time.time() - START
        for folder in folders:
            write_lines(folder.path / "record" / "n0.r0" / "events.jsonl", go(shift), end(shift + 1, state=state))
            (folder.path / "record" / "n0.r0" / "closed").touch()
        if self.dies("after it is started"):
            raise Killed
        return handle


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def engine(home: Home) -> QuickEngine:
    return QuickEngine(home.path / "suites" / "night" / "journal.jsonl")


@pytest.fixture
def session(home: Home, engine: QuickEngine) -> Session:
    return Session(home, engines={"local": lambda: engine}, clock=Clock(time.time()))


def plan(folder: Path, fields: str, *names: str) -> SuitePlan:
    for name in names:
        (folder / f"{name}.yaml").write_text(f"name: {name}\ncommand: 'true'\n")
    path = folder / "suite.yaml"
    path.write_text(f"name: night\nworkloads: [{', '.join(f'{name}.yaml' for name in names)}]\n{fields}\n")
    return plan_suite(path)


def test_warm_ups_come_first_then_all_take_turns(session: Session, tmp_path: Path) -> None:
    ended: list[TrialEnded] = []
    result = run_suite(session, plan(tmp_path, "repeats: 2\nwarmup: 1", "a", "b"), progress=ended.append)
    trials = [(trial.key.workload, trial.warmup) for trial in result.folder.trials()]
    assert trials == [("a", True), ("b", True), ("a", False), ("b", False), ("b", False), ("a", False)]
    assert [(row.name[0], row.state, row.number, row.count) for row in ended] == [
        (name, "succeeded", number, 6) for number, name in enumerate("ababba", start=1)
    ]
    assert [row.run for row in ended] == [trial.run for trial in result.folder.trials()]
    assert (result.missing, [len(cell.runs) for cell in result.cells]) == (0, [2, 2])


def test_in_blocks_one_cell_comes_after_the_other(session: Session, tmp_path: Path) -> None:
    result = run_suite(session, plan(tmp_path, "repeats: 2\norder: blocks", "a", "b"))
    assert [trial.key.workload for trial in result.folder.trials()] == ["a", "a", "b", "b"]


def test_a_run_is_noted_before_it_is_started(session: Session, engine: QuickEngine, tmp_path: Path) -> None:
    run_suite(session, plan(tmp_path, "repeats: 2", "a", "b"))
    assert engine.noted == [run for [run] in engine.submitted]


def test_a_cell_that_fails_is_left_for_this_time(session: Session, engine: QuickEngine, tmp_path: Path) -> None:
    suite = plan(tmp_path, "repeats: 3", "bad", "good")
    result = run_suite(session, suite)
    assert (result.missing, [cell.failed for cell in result.cells]) == (3, [1, 0])
    assert [trial.key.workload for trial in result.folder.trials()] == ["bad", "good", "good", "good"]
    run_suite(session, suite)
    assert len(engine.submitted) == 5, "it is tried once more the next time"


def test_a_round_that_is_complete_is_run_again_only_where_that_is_asked_for(session: Session, tmp_path: Path) -> None:
    suite = plan(tmp_path, "repeats: 1", "a")
    first = run_suite(session, suite)
    assert [run_suite(session, suite).folder.round(), len(first.folder.trials())] == [1, 1]
    assert [run_suite(session, suite, again=True).folder.round(), len(first.folder.trials())] == [2, 2]


@pytest.mark.parametrize(
    ("moment", "third"),
    [
        ("before it is made", "never started"),
        ("before it is started", "succeeded"),
        ("after it is started", "succeeded"),
    ],
)
def test_a_client_that_is_killed_at_a_run_repeats_nothing(
    moment: str, third: str, session: Session, engine: QuickEngine, home: Home, tmp_path: Path
) -> None:
    suite = plan(tmp_path, "repeats: 2", "a", "b")
    engine.dies = lambda now: now == moment and len(engine.noted) == 3
    with pytest.raises(Killed):
        run_suite(session, suite)
    folder = SuiteFolder(home.path / "suites" / "night")
    before = {trial.run for trial in folder.trials() if trial.state}
    assert (len(before), [bool(trial.state) for trial in folder.trials()]) == (2, [True, True, False])
    engine.dies = lambda now: False
    another = Session(home, engines={"local": lambda: engine}, clock=Clock(time.time()))
    result = run_suite(another, suite)
    counted = [run for cell in result.cells for run in cell.runs]
    assert len(counted) == len(set(counted)) == 4
    assert before <= set(counted)
    assert result.folder.trials()[2].state == third
    assert sorted(counted) == sorted(run for [run] in engine.submitted), "each was started once"
