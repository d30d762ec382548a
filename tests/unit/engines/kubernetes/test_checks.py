"""What a cluster cannot give a run, to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podwright import spec
from podwright.engines.base import Request
from podwright.engines.kubernetes import KubernetesEngine
from podwright.engines.kubernetes.facts import facts_from_json
from podwright.engines.staged import StagedData
from podwright.spec.problems import Refusal
from tests.fixtures.inputs import inputs

BOUND = {"podwright": {"phase": "Bound", "modes": ["ReadWriteMany"]}}
NODE = {"cpu": 16, "memory": 64 << 30, "nvidia.com/gpu": 8, "nvidia.com/mig-1g.10gb": 7}


def refusal(
    tmp_path: Path,
    text: str,
    scheduler: str = "",
    pod_text: str = "",
    staged: dict[str, StagedData] | None = None,
    **facts: Any,
) -> str:
    image = "" if "image" in text or "build" in text else "image: registry.example/train:1\n"
    (tmp_path / "workload.yaml").write_text(f"name: toy\ncommand: train\n{image}{text}\n")
    (tmp_path / "pod.yaml").write_text(
        "name: adas\nnodes:\n  - {hosts: 'dgx[1-2]', model: dgx-a100}\n"
        "storage:\n  - {name: fast, kind: nfs, mount: /fast}\n"
        f"schedulers:\n  - {{kind: kubernetes, namespace: vision{scheduler}}}\n{pod_text}"
    )
    pod, workload = spec.load_pod(tmp_path / "pod.yaml"), spec.load_workload(tmp_path / "workload.yaml")
    found = pod.scheduler()
    assert isinstance(found, spec.KubernetesScheduler)
    engine = KubernetesEngine(pod, found)
    data = {} if staged else inputs(workload.data)
    request = Request("toy-2222", workload, pod, ({},), None, data, staged=staged or {})
    with pytest.raises(Refusal) as caught:
        engine.plan(request, facts_from_json({"version": [1, 35], "payload": "0", **facts}))
    return str(caught.value).replace(f"{tmp_path}/", "")


NODES = [{"count": 2, "resources": NODE}]
CASES: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "build: {base: debian}",
        ", image: registry.example/base:1",
        {},
        "workload.yaml:3:8: build: the image is not in a registry yet, from where Kubernetes could fetch it\n\n"
        "hint: make it with `podwright image build` and `podwright image push`, then name it with `image:`",
    ),
    (
        "resources: {gpus: 9}",
        "",
        {"nodes": NODES},
        "workload.yaml:4:19: resources.gpus: 9 GPUs per node are asked for; the largest node of the cluster has 8",
    ),
    (
        "resources: {cpus: 17, memory: 65GiB}",
        "",
        {"nodes": NODES},
        "workload.yaml:4:19: resources.cpus: 17 cores per node are asked for; the largest node gives 16\n"
        "workload.yaml:4:31: resources.memory: 65 GiB per node is asked for; the largest node gives 64 GiB",
    ),
    (
        "nodes: 3\nresources: {gpus: 8}",
        "",
        {"nodes": NODES},
        "workload.yaml:4:8: nodes: 3 are asked for; the 2 nodes of the cluster hold 2 such",
    ),
    (
        "resources: {gpus: 1, mig: 2g.20gb}",
        "",
        {"nodes": NODES},
        'workload.yaml:4:27: resources.mig: the cluster has no 1 slices "2g.20gb" on one node\n\nhint: it has 1g.10gb',
    ),
    (
        "resources: {rdma: true}",
        "",
        {"nodes": NODES},
        "workload.yaml:4:19: resources.rdma: no node of the cluster offers RDMA devices (rdma/...)\n\n"
        "hint: the RDMA shared device plugin makes them known: `podwright pod up`",
    ),
    (
        "launcher: mpi",
        "",
        {},
        "workload.yaml:4:11: launcher: the cluster has no MPI Operator (MPIJob, kubeflow.org/v2beta1)\n\n"
        "hint: install it, or use `launcher: torchrun` or `ranks`",
    ),
    (
        "kubernetes: {kind: jobset}",
        "",
        {"kinds": ["kubeflow.org/v2beta1"]},
        "workload.yaml:4:20: kubernetes.kind: the cluster has no JobSet controller (JobSet, jobset.x-k8s.io/v1alpha2)"
        "\n\nhint: install it, or leave it out for a Job",
    ),
    (
        "kubernetes: {kind: trainjob, priority: high, patch: {spec: {hostIPC: true, nodeSelector: {a: b}}}}",
        "",
        {"kinds": ["trainer.kubeflow.org/v1alpha1"]},
        "workload.yaml:4:20: kubernetes.kind: a TrainJob has no side container, so that its record needs a volume claim"
        "\n"
        "workload.yaml:4:40: kubernetes.priority: a TrainJob has the priority of its training runtime\n"
        "workload.yaml:4:53: kubernetes.patch: a TrainJob does not let hostIPC be patched\n\n"
        "hint: name one with `claim:` of the scheduler in the pod file, or use `kind: jobset`\n"
        "hint: use `kind: jobset`\n"
        "hint: it lets these be patched: serviceAccountName, securityContext, nodeSelector, affinity, tolerations, "
        "imagePullSecrets, volumes, containers",
    ),
    (
        "launcher: mpi\nkubernetes: {kind: jobset}",
        "",
        {"kinds": ["kubeflow.org/v2beta1", "jobset.x-k8s.io/v1alpha2"]},
        "workload.yaml:5:20: kubernetes.kind: an MPI program runs as an MPIJob\n\n"
        "hint: leave it out, or use `launcher: torchrun` or `ranks` for a JobSet",
    ),
    (
        "kubernetes: {queue: research}",
        "",
        {},
        "workload.yaml:4:21: kubernetes.queue: the cluster has no Kueue, which keeps queues\n\n"
        "hint: leave it out to run at once",
    ),
    (
        "kubernetes: {queue: reserch}",
        "",
        {"kinds": ["kueue.x-k8s.io/v1beta1"], "queues": ["research"]},
        'workload.yaml:4:21: kubernetes.queue: the namespace has no queue "reserch"\n\nhint: queues are research',
    ),
    (
        "code: .",
        "",
        {"code_pieces": 9, "code_bytes": 8 << 20, "code_refused": "registry.example answers 401"},
        "workload.yaml:4:7: code: takes 8 MiB when it is compressed; more than 4.39 MiB travels as a layer of the image"
        ": registry.example answers 401\n\n"
        "hint: leave things out with .podwrightignore, put them into the image, or give data as a path on a claim",
    ),
    (
        "",
        ", claim: podwright",
        {"claims": {}},
        "the namespace has no volume claim podwright\n\nhint: `claim:` of the scheduler in the pod file names it",
    ),
    (
        "nodes: 2",
        ", claim: podwright",
        {"claims": {"podwright": {"phase": "Bound", "modes": ["ReadWriteOnce"]}}},
        "the claim podwright can be used on one node only (ReadWriteOnce); 2 nodes need ReadWriteMany\n\n"
        "hint: `claim:` of the scheduler in the pod file names it",
    ),
    (
        "data: {frames: /fast/frames}",
        ", claim: podwright",
        {"claims": {**BOUND, "fast": {"phase": "Pending", "words": "there are no volumes"}}},
        "workload.yaml:4:16: data.frames: the claim fast is not bound: there are no volumes\n\n"
        "hint: `podwright pod grant adas` makes the claims of the pod's storage",
    ),
    (
        "",
        "",
        {"version": [1, 28]},
        "Kubernetes 1.28 cannot carry a record without a volume claim\n\n"
        "hint: name one with `claim:` of the scheduler in the pod file",
    ),
    (
        "",
        "",
        {"namespace": False},
        "kubernetes.namespace: there is no namespace vision\n\n"
        "hint: an administrator makes it: `kubectl create namespace vision`",
    ),
    (
        "",
        "",
        {"refused": ["make Jobs", "make Secrets"]},
        "you may not make Jobs, make Secrets in the namespace vision\n\n"
        "hint: an administrator grants it: `podwright pod grant adas --namespace vision`",
    ),
]


@pytest.mark.parametrize(("text", "scheduler", "facts", "words"), CASES)
def test_refused(tmp_path: Path, text: str, scheduler: str, facts: dict[str, Any], words: str) -> None:
    assert refusal(tmp_path, text, scheduler, **facts) == words


def test_an_image_must_come_from_somewhere(tmp_path: Path) -> None:
    words = refusal(tmp_path, "# no image here")
    assert words.splitlines()[0] == "workload.yaml:1:1: image: is missing: on Kubernetes everything runs in an image"


STAGED: list[tuple[StagedData, str, str]] = [
    (
        StagedData(b"list", {}, 9, ("/fast/frames", "/scratch/frames")),
        "",
        "workload.yaml:4:16: data.frames: /scratch/frames is on no storage of the pod that containers see\n\n"
        "hint: scan it where the pod's `storage` mounts it, or behind an s3:// or http:// address",
    ),
    (
        StagedData(b"0" * 20_000_000, {}, 9, ()),
        "",
        "workload.yaml:4:7: data: the list of its files takes 19.1 MiB; 14.1 MiB travel to Kubernetes\n\n"
        "hint: choose fewer samples, or pack them into tar shards",
    ),
    (
        StagedData(b"list", {}, 9_000_000, ()),
        "cache: {size: 1MB}\n",
        "workload.yaml:4:7: data: 8.58 MiB of data are more than the 977 KiB of a node's cache\n\n"
        "hint: choose fewer samples, or give `cache: size:` of the pod more",
    ),
    (
        StagedData(b"list", {}, 9, ("/fast/frames",)),
        "cache: {claim: kept}\n",
        "the claim kept can be used on one node only (ReadWriteOnce); 2 nodes need ReadWriteMany\n\n"
        "hint: `claim:` of the `cache` in the pod file names it",
    ),
]


@pytest.mark.parametrize(("given", "more", "words"), STAGED)
def test_data_that_cannot_be_brought(tmp_path: Path, given: StagedData, more: str, words: str) -> None:
    once = {"kept": {"phase": "Bound", "modes": ["ReadWriteOnce"]}, "fast": BOUND["podwright"]}
    text = "data: {frames: 'selection:rare'}\nnodes: 2"
    told = refusal(tmp_path, text, pod_text=more, staged={"frames": given}, claims=once)
    assert told == words


def test_what_it_lacks(tmp_path: Path) -> None:
    text = "name: a\nnodes:\n  - {hosts: n1, model: cpu-server}\nschedulers:\n  - {kind: kubernetes}\n"
    (tmp_path / "pod.yaml").write_text(text)
    pod = spec.load_pod(tmp_path / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    assert set(KubernetesEngine(pod, scheduler).unsupported()) == {"route", "shared"}
    with_claim = scheduler.model_copy(update={"claim": "podwright"})
    assert set(KubernetesEngine(pod, with_claim).unsupported()) == {"route"}
