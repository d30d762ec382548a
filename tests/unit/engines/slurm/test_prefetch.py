"""The job that fills a shared cache: when there is one, how it is given to Slurm, and how it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright import spec
from podwright.clients.ssh import Answer
from podwright.engines.base import Request
from podwright.engines.slurm import SlurmEngine
from podwright.engines.slurm.prefetch import prefetch_job, why_not
from podwright.engines.staged import StagedData
from podwright.runs import RunFolder
from podwright.spec import SlurmScheduler
from tests.fixtures.inputs import inputs
from tests.unit.engines.slurm.test_engine import SUBMITTED, Cluster, add, clock, cluster, engine
from tests.unit.engines.slurm.test_script import facts_of

__all__ = ["clock", "cluster", "engine"]

NOT_WHILE = "data comes when the run has its nodes, not while it waits for them: "
OWN = " is each node's own; one below the `mount` of a storage system in the pod file is filled meanwhile"


@pytest.mark.parametrize(
    ("cache", "partition", "words"),
    [
        ("{path: /lustre/$USER/cache}", "cpu", None),
        ("{path: /lustre/cache/}", "cpu", None),
        ("{path: /lustre2/cache}", "cpu", f"{NOT_WHILE}the cache /lustre2/cache{OWN}"),
        ("{path: /lustre/$SLURMD_NODENAME}", "cpu", f"{NOT_WHILE}the cache /lustre/$SLURMD_NODENAME{OWN}"),
        ("{}", "cpu", f"{NOT_WHILE}the cache /tmp/podwright-cache-alice{OWN}"),
        ("{path: /lustre/cache}", "short", f"{NOT_WHILE}short gives whole nodes, and bringing data needs none"),
    ],
)
def test_only_a_cache_that_nodes_share_is_filled_before(
    tmp_path: Path, cache: str, partition: str, words: str | None
) -> None:
    text = 'name: p\nnodes: [{hosts: "d[1-4]", model: dgx-a100}]\nschedulers: [{kind: slurm}]\n'
    (tmp_path / "pod.yaml").write_text(f"{text}storage: [{{name: s, kind: lustre, mount: /lustre}}]\ncache: {cache}\n")
    (tmp_path / "workload.yaml").write_text(f"name: toy\ncommand: train\nslurm: {{partition: {partition}}}\n")
    pod, workload = spec.load_pod(tmp_path / "pod.yaml"), spec.load_workload(tmp_path / "workload.yaml")
    staged = {"frames": StagedData(b"list", {}, 9, ())}
    facts = facts_of("23.11-dgx" if partition == "short" else "25.05-mixed")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, SlurmScheduler)
    request = Request("toy-2222", workload, pod, ({},), None, inputs({}), staged=staged)
    assert why_not(request, pod, facts) == words
    assert (prefetch_job(request, pod, scheduler, facts, "/runs") is None) == (words is not None)
    nothing = Request("toy-2222", workload, pod, ({},), None, inputs({}))
    assert why_not(nothing, pod, facts) is None
    assert prefetch_job(nothing, pod, scheduler, facts, "/runs") is None


def with_script(folder: RunFolder) -> RunFolder:
    (folder.path / "job" / "prefetch.sh").write_text("#!/bin/sh\n")
    return folder


@pytest.mark.parametrize("code", [0, 1])
def test_it_is_given_after_the_run_and_may_be_refused(
    engine: SlurmEngine, cluster: Cluster, tmp_path: Path, code: int
) -> None:
    cluster.answers["sbatch"] = lambda: Answer(0, b"71\n", "")
    cluster.answers["sh"] = lambda: Answer(code, b"", "")
    assert engine.submit("toy-2222", [with_script(add(tmp_path))], again=False) == "71"
    assert [call[0] for call in cluster.calls] == ["sbatch", "sh"]
    assert cluster.calls[1][-2:] == ["/scratch/u/runs/toy-2222", "71"]


def test_it_is_cancelled_with_the_run(engine: SlurmEngine, cluster: Cluster, tmp_path: Path) -> None:
    engine.cancel([with_script(add(tmp_path, SUBMITTED))])
    assert [call[-1] for call in cluster.calls[1:]] == ["70", "toy-2222.prefetch"]
    engine.clean(add(tmp_path / "other", SUBMITTED))
    assert cluster.calls[-1] == ["scancel", "--quiet", "--", "70"]
