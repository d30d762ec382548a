"""A NetworkPolicy beside a run: only where the user may make one, and said once where not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podwright import launch, spec
from podwright.cli.terminal.follow import say_gaps
from podwright.engines.base import Request
from podwright.engines.kubernetes import KubernetesEngine
from podwright.engines.kubernetes.facts import KubernetesFacts
from podwright.engines.kubernetes.plan import KubernetesJob
from podwright.runs import Home
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.engines.kubernetes.small_cluster import SmallCluster, small_cluster

POD = """\
name: adas
nodes: [{{hosts: "dgx[01-02]", model: dgx-a100}}]
schedulers: [{{kind: kubernetes, kubeconfig: {kubeconfig}, image: "registry.example/train:1"}}]
"""
WORKLOAD = "name: toy\ncommand: [python, train.py]\nmatrix: {lr: [1, 2]}\n"
SENTENCE = (
    "you may not make NetworkPolicies in the namespace home: whoever reaches its Kubernetes pods reaches the ports of "
    "this run; `podwright pod grant` gives the right"
)


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as cluster:
        cluster.objects["/version"] = {"major": "1", "minor": "35"}
        cluster.objects["/apis"] = {"groups": []}
        cluster.objects["/api/v1/namespaces/home"] = {"metadata": {"name": "home"}}
        yield cluster


@pytest.fixture
def asked(tmp_path: Path) -> Request:
    (tmp_path / "workload.yaml").write_text(WORKLOAD)
    workload = spec.load_workload(tmp_path / "workload.yaml")
    return Request("toy-2222", workload, None, ({"lr": 1}, {"lr": 2}), None, {})


@pytest.fixture
def engine(cluster: SmallCluster, tmp_path: Path) -> KubernetesEngine:
    (tmp_path / "kubeconfig").write_text(cluster.kubeconfig)
    (tmp_path / "pod.yaml").write_text(POD.format(kubeconfig=tmp_path / "kubeconfig"))
    pod = spec.load_pod(tmp_path / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    return KubernetesEngine(pod, scheduler)


def policies(job: KubernetesJob) -> list[str]:
    kinds = [made["kind"] for objects in job.objects.values() for made in objects]
    return [kind for kind in kinds if kind == "NetworkPolicy"]


def test_every_part_of_a_job_has_its_own(engine: KubernetesEngine, asked: Request) -> None:
    job = engine.plan(asked, engine.probe(asked))
    assert policies(job) == ["NetworkPolicy", "NetworkPolicy"]
    assert job.gaps == (engine._scheduler.nothing_kept(),), "the pod has no claim, and lacks nothing else"


@pytest.mark.parametrize("verb", ["create", "patch"])
def test_one_who_lacks_a_right_runs_without(
    engine: KubernetesEngine, cluster: SmallCluster, asked: Request, verb: str
) -> None:
    """The object is applied, which asks for both rights."""
    cluster.forbidden = {(verb, "networkpolicies")}
    facts = engine.probe(asked)
    assert facts.refused == ()
    job = engine.plan(asked, facts)
    assert policies(job) == []
    assert SENTENCE in job.gaps


def test_facts_of_a_cluster_that_was_not_asked_have_one(engine: KubernetesEngine, asked: Request) -> None:
    facts = KubernetesFacts((1, 35), "0")
    assert policies(engine.plan(asked, facts)) == 2 * ["NetworkPolicy"]
    assert policies(engine.plan(asked, replace(facts, policies=False))) == []


def test_what_a_target_does_not_give_is_said_once_and_kept(
    tmp_path: Path, asked: Request, capsys: pytest.CaptureFixture[str]
) -> None:
    without = FakeEngine()
    without.gaps = (SENTENCE,)
    session = launch.Session(Home.open(tmp_path / "home"), engines={"local": lambda: without})
    run = launch.start(session, asked.workload)
    say_gaps(run)
    assert capsys.readouterr().err == f"missing   {SENTENCE}\n"
    assert [part.folder.gaps() for part in run.parts()] == [[SENTENCE], [SENTENCE]]
    assert without.submitted == [[f"{run.id}-1", f"{run.id}-2"]]
