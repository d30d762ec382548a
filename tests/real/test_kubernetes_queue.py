"""What waits on a real Kubernetes and why, and one run after another: whoever looks next releases it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.usage import QueuedJob
from podwright.lab.kubernetes import KubernetesLab
from podwright.launch import Run
from podwright.usage import gather
from tests.contract.sites import END_S, KubernetesSite, until
from tests.real.clients import BIN, kubectl
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

GATE = "podwright.test/gate"
"""A label that no node has: a run that asks for it waits until the test opens the gate."""
BEHIND_THE_GATE = json.dumps({"patch": {"spec": {"nodeSelector": {GATE: "open"}}}})
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "no-gpus", "namespace": "lab"},
    "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
}
WORKLOADS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "workloads.kueue.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    },
    "spec": {
        "group": "kueue.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "Workload", "listKind": "WorkloadList", "plural": "workloads", "singular": "workload"},
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""As much of Kueue as keeps what it says of a job; the fields are those that it writes (v1beta1)."""
SEEING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "see-workloads", "labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}},
    "rules": [{"apiGroups": ["kueue.x-k8s.io"], "resources": ["workloads"], "verbs": ["get", "list"]}],
}


@pytest.fixture
def site(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[KubernetesSite]:
    site = KubernetesSite(kubernetes_cluster, tmp_path)
    yield site
    site.close()


def podwright(site: KubernetesSite, *words: str) -> subprocess.CompletedProcess[str]:
    """One command of another client of the same home."""
    environ = {**os.environ, "PODWRIGHT_HOME": str(site.home.path), "NO_COLOR": "1"}
    command = [str(BIN / "podwright"), *words]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def jobs(site: KubernetesSite) -> dict[str, QueuedJob]:
    """All that runs or waits, by name."""
    (queue,) = gather.queues(site.session, site.target)
    return {job.name: job for job in queue.jobs}


def waits(site: KubernetesSite, name: str, word: str) -> str:
    """Why a job waits, once this word is in it: the scheduler and the controllers take their time to say so."""
    return str(until(lambda: _why(site, name, word), f"{name} waits: {word}"))


def _why(site: KubernetesSite, name: str, word: str) -> str:
    job = jobs(site).get(name)
    if job is None or word not in job.why:
        return ""
    return job.why


@contextmanager
def made(site: KubernetesSite, *objects: dict[str, Any]) -> Iterator[None]:
    """Objects that an administrator makes, and takes away again."""
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
    try:
        # What the server knows of every kind takes a busy machine longer to tell than kubectl waits for.
        words = ("apply", "--server-side", "--validate=false", "--filename=-")
        done = site.lab.kubectl(*words, admin=True, give=given)
        assert done.returncode == 0, done.stderr
        yield
    finally:
        site.lab.kubectl("delete", "--ignore-not-found", "--wait=true", "--filename=-", admin=True, give=given)


@contextmanager
def open_gate(site: KubernetesSite) -> Iterator[None]:
    """Let one node take the runs that wait for it."""
    host = site.lab.shape.hosts()[0]
    site.lab.kubectl("label", "node", host, f"{GATE}=open", admin=True)
    try:
        yield
    finally:
        site.lab.kubectl("label", "node", host, f"{GATE}-", admin=True)


def job_of(site: KubernetesSite, run: Run) -> dict[str, Any]:
    found: dict[str, Any] = kubectl(site.lab, "get", "job", run.id, "--namespace=lab")
    return found


def test_the_queue_gives_each_of_the_four_reasons(site: KubernetesSite) -> None:
    placed = site.start("--steps 1", kubernetes=BEHIND_THE_GATE)
    held = site.start("--steps 1", after=placed.id)
    stopped = site.start("--steps 1", kubernetes=BEHIND_THE_GATE)
    suspend = json.dumps({"spec": {"suspend": True}})
    site.lab.kubectl("patch", "job", stopped.id, "--namespace=lab", "--type=merge", f"--patch={suspend}")
    assert waits(site, placed.id, "kind").endswith("are not of the kind asked for")
    assert waits(site, held.id, "succeed") == f"waits for {placed.id} to succeed"
    assert waits(site, stopped.id, "suspended") == "is suspended"
    with made(site, QUOTA):
        until(lambda: "status" in kubectl(site.lab, "get", "quota", "no-gpus", "--namespace=lab"), "the quota counts")
        over = site.start("--steps 1", resources="{cpus: 1, memory: 512MiB, gpus: 1}")
        assert waits(site, over.id, "quota").startswith(
            "waits: the quota no-gpus is too small for a node of it (asked "
        )
        row = jobs(site)[over.id]
        assert (row.run, row.state, row.nodes, row.gpus) == (over.id, "waiting", 1, 1)
    with kueue(site, stopped):
        reason = "waits in the queue research: insufficient unused quota for nvidia.com/gpu, 8 more needed"
        assert waits(site, stopped.id, "research") == reason
    asked = podwright(site, "queue", site.target)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.startswith(f"{site.target}: ")
    assert "only the namespace lab is seen: GPUs that others hold count as free" in asked.stdout
    assert f"waits for {placed.id} to succeed" in asked.stdout


@contextmanager
def kueue(site: KubernetesSite, run: Run) -> Iterator[None]:
    """Kueue's word on a run: its kinds, and the object that it keeps of a job."""
    with made(site, WORKLOADS, SEEING):
        established = ("wait", "--for=condition=Established", "crd/workloads.kueue.x-k8s.io", "--timeout=120s")
        assert site.lab.kubectl(*established, admin=True).returncode == 0
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": run.id, "controller": True}
        message = "insufficient unused quota for nvidia.com/gpu, 8 more needed"
        condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": message}
        workload = {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": {
                "name": f"job-{run.id}",
                "namespace": "lab",
                "ownerReferences": [{**owner, "uid": job_of(site, run)["metadata"]["uid"]}],
            },
            "spec": {"queueName": "research"},
            "status": {"conditions": [condition]},
        }
        with made(site, workload):
            yield


def test_a_second_client_releases_a_run_whose_first_client_was_killed(site: KubernetesSite) -> None:
    first = site.start("--steps 1", kubernetes=BEHIND_THE_GATE)
    site.workload("--steps 1")
    file = site.folder / "workload.yaml"
    code = f"""
import os, signal
from pathlib import Path
from podwright import launch, spec
session = launch.Session.open(Path({str(site.home.path)!r}))
run = launch.start(session, spec.load_workload({str(file)!r}), {site.target!r}, after={first.id!r})
print(run.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    client = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert client.returncode == -signal.SIGKILL, client.stderr
    second = site.adopt(client.stdout.strip())
    job = job_of(site, second)
    notes = job["metadata"]["annotations"]
    held = notes["podwright.dev/held"], notes["podwright.dev/held-for"]
    assert (job["spec"]["suspend"], held) == (True, ("after", first.id))
    record = second.record()
    assert (record.state, record.reason) == ("pending", f"waits for {first.id} to succeed")
    assert job_of(site, second)["spec"]["suspend"], "a look releases nothing while the other waits"
    with open_gate(site):
        assert first.wait(END_S).state == "succeeded"
    assert job_of(site, second)["spec"]["suspend"], "nobody has looked at it since"
    assert podwright(site, "ps").returncode == 0
    released = job_of(site, second)
    assert (released["spec"]["suspend"], "podwright.dev/held" in released["metadata"]["annotations"]) == (False, False)
    assert second.wait(END_S).state == "succeeded"
    ended, began = first.record().ended_at, second.record().started_at
    assert ended is not None
    assert began is not None
    assert ended <= began


def test_a_run_whose_first_run_failed_is_ended_with_words(site: KubernetesSite) -> None:
    first = site.start("--steps 9 --fail-at 1", kubernetes=BEHIND_THE_GATE)
    site.workload("--steps 1")
    file = site.folder / "workload.yaml"
    started = podwright(site, "run", str(file), "--on", site.target, "--detach", "--after", first.id)
    assert started.returncode == 0, started.stderr
    assert f"held      until {first.id} has succeeded; a later `podwright ps`," in started.stderr
    second = site.adopt(started.stdout.strip())
    with open_gate(site):
        assert first.wait(END_S).state == "failed"
    assert podwright(site, "wait", second.id).returncode == 1
    record = second.record()
    assert (record.state, record.attempts) == ("failed", 0)
    assert record.reason == f"{first.id}, which it comes after, did not succeed"
    gone = ("get", "job", second.id, "--namespace=lab", "--ignore-not-found", "--output=name")
    until(lambda: not site.lab.kubectl(*gone).stdout, "its object is gone")


@pytest.mark.nightly
@pytest.mark.parametrize("fields", [{"kubernetes": "{kind: jobset}"}, {"launcher": "mpi"}], ids=["jobset", "mpijob"])
def test_every_kind_of_run_is_held_and_released(site: KubernetesSite, fields: dict[str, str]) -> None:
    first = site.start("--steps 1", kubernetes=BEHIND_THE_GATE)
    second = site.start("--steps 1", nodes=2, after=first.id, **fields)
    assert second.record().reason == f"waits for {first.id} to succeed"
    with open_gate(site):
        assert first.wait(END_S).state == "succeeded"
    assert second.wait(END_S).state == "succeeded", second.explain()
