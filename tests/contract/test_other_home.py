"""A run that one home started is found, taken up, followed and cancelled from another home of the same user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.cli.terminal.verdict import CANCELLED
from tests.contract.conftest import make
from tests.contract.sites import ClusterSite, until
from tests.real.clients import Client

CLUSTERS = [
    pytest.param("slurm", marks=[pytest.mark.slurm, pytest.mark.xdist_group("slurm")]),
]


@pytest.fixture(params=CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ClusterSite]:
    for site in make(request, request.param, tmp_path):
        assert isinstance(site, ClusterSite)
        yield site


@pytest.fixture
def other(cluster: ClusterSite, tmp_path: Path) -> Client:
    """The same user on another machine, who knows the pod and no run."""
    return Client(tmp_path / "other", cluster.pod_file)


def test_a_run_is_followed_and_cancelled_from_another_home(cluster: ClusterSite, other: Client) -> None:
    run = cluster.start("--hold-at 3 --steps 9", nodes=2)
    cluster.wait_step(run, 3, rank=0)
    [listed] = [row for row in json.loads(other.ask("pod", "runs", cluster.target, "--json")) if row["id"] == run.id]
    assert (listed["state"], listed["nodes"], listed["here"]) == ("running", 2, False)
    assert other.ask("import", "--from", cluster.target, run.id) == f"{run.id}\n"
    shown = other.show(run.id)
    assert (shown["state"], shown["world_size"], shown["target"]) == ("running", 2, cluster.target)
    until(lambda: "starts at step 0" in other.ask("logs", run.id), "the rank's lines are there")
    other.ask("import", "--from", cluster.target, run.id, code=2)
    other.ask("import", "--from", cluster.target, "count-zzzz", code=2)
    other.ask("cancel", run.id)
    assert other.wait(run.id, code=CANCELLED)["state"] == "cancelled"
    record = run.wait()
    assert (record.state, record.reason) == ("cancelled", "was cancelled from another home")
    told = [(value.rank, value.name, value.value) for value in run.folder.series()]
    taken = json.loads(other.ask("show", run.id, "--json"))
    assert taken["hosts"] == list(run.record().hosts)
    assert told


def test_a_sweep_is_taken_up_with_its_points_and_may_be_removed_there(cluster: ClusterSite, other: Client) -> None:
    run = cluster.start("--steps 3", repeat=2)
    assert run.wait().state == "succeeded"
    other.ask("import", "--from", cluster.target, f"{run.id}-1", code=2)
    taken = json.loads(other.ask("import", "--from", cluster.target, run.id, "--json"))
    assert taken["runs"] == [run.id, f"{run.id}-1", f"{run.id}-2"]
    assert other.wait(run.id)["state"] == "succeeded"
    assert other.show(f"{run.id}-2")["results"]["step"] == 3
    other.ask("run", "--like", run.id, "--yes", code=2)
    other.ask("rm", run.id, "--yes")
    assert run.id not in other.ask("pod", "runs", cluster.target)
