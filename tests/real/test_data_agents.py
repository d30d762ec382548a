"""A policy whose agent is a workload: its runs are started through what the command line hands in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright import launch, spec
from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.policies.folder import Policy
from podwright.data.policies.policies import Policies
from podwright.launch import Run, Session
from podwright.runs import Home
from tests.contract.sites import SlurmSite
from tests.fixtures.a2d2 import write_scenes
from tests.real.labs import open_folder, slurm_lab

AGENT = """
import json, os, sys
for line in open(sys.argv[1]):
    file = json.loads(line)
    size = os.path.getsize(file["file"])
    print(json.dumps({"path": file["path"], "tags": {"looked_by": os.environ["PODWRIGHT_RUN"], "bytes": size}}))
"""


def make_agent(folder: Path) -> Path:
    """Write the workload of an agent."""
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "look.py").write_text(AGENT)
    path = folder / "look.yaml"
    path.write_text(f"name: look\ncode: code\ncommand: {sys.executable} look.py {{data.batch}}\n")
    return path


class Starter:
    """Starts runs like the command line does; `then` happens behind the first."""

    def __init__(self, session: Session, store: Store) -> None:
        self._session, self._store = session, store
        self.runs: list[Run] = []

    def __call__(self, workload: spec.Workload, target: str) -> Run:
        run = launch.start(self._session, workload, target)
        self.runs.append(run)
        if len(self.runs) == 1:
            Policies(self._store).pause("look")
        return run


def pause_and_resume(session: Session, folder: Path, target: str) -> None:
    store = Store(session.home.path)
    scan(store, write_scenes(folder / "a2d2"), "a2d2")
    agent = make_agent(folder)
    policy = Policy("look", "a2d2", "kind=label", "agent", workload=str(agent), target=target, batch=7)
    Policies(store).add(policy)
    start = Starter(session, store)
    paused = Policies(store, start).run("look")
    assert (paused.policy.state, paused.policy.matched, paused.done) == ("paused", 12, 7)
    Policies(store).resume("look")
    ended = Policies(store, start).run("look")
    assert (ended.policy.state, ended.done, ended.failed) == ("done", 12, ())
    assert {run.record().target for run in start.runs} == {target}
    with open_dataset(store, "a2d2") as opened:
        counts = [opened.count_files(opened.condition(f"looked_by={run.id} and bytes>0")) for run in start.runs]
    assert counts == [7, 5]
    assert [path.name for path in (folder / "code").iterdir()] == ["look.py"]


def test_an_agent_that_is_a_workload_is_paused_and_resumed(tmp_path: Path) -> None:
    # A name of this process's own: the engine finds processes by their run wherever they were started.
    home = Home.open(tmp_path / f"home-{os.getpid()}")
    pause_and_resume(Session(home), tmp_path, "local")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SlurmSite]:
    with slurm_lab(nodes=1) as lab:
        site = SlurmSite(lab, tmp_path / "site")
        yield site
        site.close()


@pytest.mark.slow
@pytest.mark.slurm
@pytest.mark.xdist_group("slurm-agents")
def test_an_agent_on_a_cluster_is_paused_and_resumed(cluster: SlurmSite) -> None:
    with open_folder() as folder:
        pause_and_resume(cluster.session, folder, cluster.target)
