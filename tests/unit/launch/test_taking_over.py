"""Runs of another home of the same user: listed and taken up, whole or not at all, and nothing of theirs believed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.base import Engine, Status
from podwright.engines.found import FoundRun
from podwright.engines.site import SITE
from podwright.launch import Session, find, pods, runs_on, take_up
from podwright.runs import Home, RunFolder
from podwright.spec.problems import Refusal
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.runs.made import asked

POD = 'name: adas\nnodes: [{hosts: "d[1-4]", model: dgx-a100}]\nschedulers: [{kind: slurm}]\n'


class Target(FakeEngine):
    """A cluster that has runs of other homes."""

    name = "slurm"

    def __init__(self) -> None:
        super().__init__()
        self.says = Status("there")
        self.has: list[FoundRun] = []

    def found(self, ids: Sequence[str] = ()) -> list[FoundRun]:
        return [run for run in self.has if (run.asked.id in ids if ids else run.asked.parent is None)]


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def session(tmp_path: Path, target: Target) -> Session:
    (tmp_path / "pod.yaml").write_text(POD)
    home = Home.open(tmp_path / "home")
    pods.add(home, tmp_path / "pod.yaml")
    engines: Mapping[str, Any] = {"slurm": lambda pod, scheduler: target}
    return Session(home, schedulers=engines)


def run_of(run_id: str, handle: str = "70", path: Path | None = None, **changes: Any) -> FoundRun:
    row = asked(run_id, engine="slurm", target="elsewhere", **changes)
    return FoundRun(row, "running", handle, {SITE: b'{"folder": "/scratch/u", "step": [], "wrap": []}'}, path)


def test_a_run_is_listed_and_followed_without_this_machines_own(session: Session, target: Target) -> None:
    workload = {"name": "toy", "secrets": ["PATH"], "command": ["python", "train.py"]}
    code = {"sha256": "00", "files": 3, "folder": "/etc"}
    target.has = [run_of("toy-2222", workload=workload, code=code, command_line=["x"], file="/etc/w.yaml", after="a-2")]
    listed = runs_on(session, "adas")
    assert [(row["id"], row["state"], row["here"]) for row in listed.as_json()] == [("toy-2222", "running", False)]
    assert take_up(session, "adas", "toy-2222").runs == ("toy-2222",)
    kept = session.home.folder("toy-2222").asked
    assert (kept.target, kept.secrets, kept.file, kept.command_line, kept.after) == ("adas", [], "", [], None)
    assert kept.code == {"sha256": "00", "files": 3}
    assert find(session, "toy-2222").record().state == "pending"
    assert find(session, "toy-2222").folder.handle == "70"
    assert runs_on(session, "adas").here == {"toy-2222"}
    find(session, "toy-2222").cancel()
    assert target.cancelled == ["toy-2222"]


def test_a_run_that_is_lost_is_never_submitted_from_here(session: Session, target: Target) -> None:
    target.has = [run_of("toy-2222", created_at=9e9)]
    take_up(session, "adas", "toy-2222")
    target.says = Status("gone", "nobody knows it", unknown_to_engine=True)
    (session.home.folder("toy-2222").path / "client.jsonl").write_text("")
    find(session, "toy-2222").record()
    assert target.submitted == []


def test_removing_it_removes_it_there(session: Session, target: Target) -> None:
    target.has = [run_of("toy-2222")]
    take_up(session, "adas", "toy-2222")
    find(session, "toy-2222").cancel()
    target.says = Status("gone", "", "cancelled")
    assert find(session, "toy-2222").record().state == "cancelled"
    find(session, "toy-2222").remove()
    assert target.removed == ["toy-2222"]


def test_a_sweep_comes_whole_or_not_at_all(session: Session, target: Target) -> None:
    parent = run_of("sweep-2222", points=2)
    points = [run_of(f"sweep-2222-{index + 1}", parent="sweep-2222", index=index) for index in range(2)]
    target.has = [parent, points[0], replace(points[1], asked=replace(points[1].asked, index=7))]
    with pytest.raises(Refusal, match="sweep-2222-2 is not there as a point of sweep-2222"):
        take_up(session, "adas", "sweep-2222")
    assert list(session.home.all_ids()) == []
    target.has = [parent, *points]
    with pytest.raises(Refusal, match="sweep-2222-1 is a point of sweep-2222"):
        take_up(session, "adas", "sweep-2222-1")
    assert take_up(session, "adas", "sweep-2222").runs == ("sweep-2222", "sweep-2222-1", "sweep-2222-2")
    assert [point.id for point in find(session, "sweep-2222").points()] == ["sweep-2222-1", "sweep-2222-2"]


def test_what_lies_on_this_machine_is_linked(session: Session, target: Target, tmp_path: Path) -> None:
    """The folder is the run: what another home writes there is seen here, and the other way round."""
    other = Home.open(tmp_path / "other")
    folder = other.create(replace(asked("toy-2222"), engine="slurm", target="adas"), {}, {}, tmp_path / "shared")
    target.has = [run_of("toy-2222", path=folder.path.resolve())]
    take_up(session, "adas", "toy-2222")
    assert session.home.folder("toy-2222").path.resolve() == folder.path.resolve()
    assert (folder.path / "spec" / "pod.yaml").read_text() == POD
    assert RunFolder(folder.path).handle == "70"


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("toy-3333", "adas has no run toy-3333 of yours"),
        ("../toy", "is no id of a run"),
        ("young-2222", "young-2222 has no job on adas: the home that started it has not submitted it"),
        ("here-2222", "there is a run here-2222 here already"),
    ],
)
def test_what_cannot_be_taken_up_is_said(session: Session, target: Target, ref: str, said: str) -> None:
    target.has = [run_of("young-2222", handle="")]
    session.home.create(asked("here-2222"), {}, {})
    with pytest.raises(Refusal, match=said):
        take_up(session, "adas", ref)


def test_runs_of_this_machine_are_known_to_their_homes(session: Session) -> None:
    with pytest.raises(Refusal, match="runs of this target are known to the homes that started them"):
        runs_on(session, "local")
    assert Engine.found.__doc__
    assert json.loads(json.dumps(runs_on(session, "adas").as_json())) == []
