"""Which nodes the failed runs of a home have in common, and what else there is does not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from podwright.launch import Session
from podwright.runs import Home
from podwright.spec import load_pod
from podwright.usage import lemon_nodes
from tests.fixtures.repeats import Planted, asked_of, write_one

POD = """\
name: adas
nodes:
  - {hosts: m1, model: cpu-server, roles: [management], addresses: [10.0.0.1]}
  - {hosts: "dgx[001-010]", model: dgx-a100}
schedulers: [{kind: slurm}]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    home = Home.open(tmp_path / "home")
    monkeypatch.setenv("PODWRIGHT_HOME", str(home.path))
    rows = (
        ("train-aaaa", "adas:slurm", "failed"),
        ("train-bbbb", "adas", "failed"),
        ("train-cccc", "adas:slurm", "succeeded"),
        ("train-dddd", "local", "failed"),
    )
    for run, target, state in rows:
        planted = Planted(state=state)
        write_one(home, replace(asked_of(run, planted), target=target), 60.0, planted)
    return home


def test_failed_runs_of_this_pod_count(home: Home, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    with Session.open() as session:
        found = lemon_nodes(session, load_pod(tmp_path / "pod.yaml"))
        assert [(lemon.host, lemon.failures, lemon.of) for lemon in found] == [("dgx001", 2, 2)]
        assert found[0].odds == pytest.approx(0.01)
        assert lemon_nodes(session, load_pod(tmp_path / "pod.yaml"), most=1)[0].of == 1
