"""What Kubernetes says of runs, in our words: texts as scheduler, kubelet and Job controller of 1.35 wrote them."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.engines.base import Status
from podwright.engines.kubernetes.states import creation_words, scheduling_words, seen, waiting_words

SCHEDULING = [
    (
        "0/140 nodes are available: 140 Insufficient nvidia.com/gpu. preemption: 0/140 nodes are available: 140 No "
        "preemption victims found for incoming pod.",
        "waits: 140 nodes, none with enough free GPUs",
    ),
    (
        "0/142 nodes are available: 140 node(s) had untolerated taint {kwok.x-k8s.io/node: fake}, 2 Insufficient cpu, "
        "2 Insufficient rdma/shared_ib0. no new claims to deallocate, preemption: 0/142 nodes are available: 140 "
        "Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod.",
        "waits: 142 nodes, none with enough free cores and free RDMA devices (shared_ib0); 140 are kept for others",
    ),
    (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.",
        "waits: 3 nodes; 1 take no work; 2 are not of the kind asked for",
    ),
    ("0/1 nodes are available: 1 Insufficient memory.", "waits: one node, none with enough free memory"),
    ('persistentvolumeclaim "podwright" not found', 'waits: persistentvolumeclaim "podwright" not found'),
    ("", "waits for nodes to become free"),
]


@pytest.mark.parametrize(("message", "words"), SCHEDULING)
def test_scheduling(message: str, words: str) -> None:
    assert scheduling_words(message) == words


CREATION = [
    (
        'Error creating: pods "toy-2222-0-x" is forbidden: exceeded quota: gpus, requested: '
        "requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=60, limited: requests.nvidia.com/gpu=64",
        "waits: the quota gpus is used up (asked requests.nvidia.com/gpu=8, used requests.nvidia.com/gpu=60, "
        "limit requests.nvidia.com/gpu=64)",
    ),
    (
        'Error creating: pods "toy-2222-0-x" is forbidden: exceeded quota: small, requested: limits.cpu=8,'
        "limits.memory=512Mi, used: limits.cpu=0,limits.memory=0, limited: limits.cpu=7500m,limits.memory=1Gi",
        "waits: the quota small is too small for a node of it (asked limits.cpu=8,limits.memory=512Mi, "
        "limit limits.cpu=7500m,limits.memory=1Gi)",
    ),
    (
        "exceeded quota: odd, requested: pods=some, used: pods=0, limited: pods=none",
        "waits: the quota odd is used up (asked pods=some, used pods=0, limit pods=none)",
    ),
    (
        'Error creating: pods "toy-2222-0-x" is forbidden: violates PodSecurity "restricted:latest": unrestricted '
        'capabilities (container "pilot" must not include "IPC_LOCK" in securityContext.capabilities.add)',
        "waits: the namespace's Pod Security (restricted:latest) forbids it: unrestricted capabilities (container "
        '"pilot" must not include "IPC_LOCK" in securityContext.capabilities.add)',
    ),
    (
        'Error creating: pods "t-" is forbidden: error looking up service account adas/podwright: serviceaccount '
        '"podwright" not found',
        "waits: there is no service account podwright; `podwright pod grant` makes it",
    ),
    ("Error creating: something else", "waits: its Kubernetes pods cannot be made: Error creating: something else"),
]


@pytest.mark.parametrize(("message", "words"), CREATION)
def test_creation(message: str, words: str) -> None:
    assert creation_words(message) == words


def job(conditions: list[str] | None = None, **metadata: Any) -> dict[str, Any]:
    rows = [{"type": name, "status": "True"} for name in conditions or []]
    return {"metadata": {"labels": {}, **metadata}, "spec": {}, "status": {"conditions": rows}}


def pod(phase: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {}, "status": {"phase": phase, **status}}


def container(**state: Any) -> list[dict[str, Any]]:
    return [{"name": "pilot", "image": "registry.example/train:1", "state": state}]


def ended(**facts: Any) -> dict[str, Any]:
    return pod("Succeeded", containerStatuses=container(terminated=facts))


RUNNING = pod("Running", containerStatuses=container(running={}))
PULLING = pod("Pending", containerStatuses=container(waiting={"reason": "ErrImagePull", "message": "not found"}))
UNPLACED = pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "message": SCHEDULING[0][0]}])
SEEN = [
    (job(), [RUNNING, RUNNING], Status("there")),
    (job(), [RUNNING, UNPLACED], Status("there", "waits: 140 nodes, none with enough free GPUs")),
    (job(), [UNPLACED, UNPLACED], Status("waiting", "waits: 140 nodes, none with enough free GPUs")),
    (job(), [PULLING], Status("waiting", "waits: the image registry.example/train:1 cannot be fetched: not found")),
    (job(), [], Status("waiting", "waits for its nodes")),
    (job(deletionTimestamp="2026-11-16T08:00:00Z"), [RUNNING], Status("there", "is being ended")),
    ({**job(["Suspended"]), "spec": {"suspend": True}}, [], Status("waiting", "is suspended")),
    (job(["Suspended"]), [], Status("waiting", "waits for its nodes")),  # we have just resumed it
    (
        {**job(labels={"kueue.x-k8s.io/queue-name": "research"}), "spec": {"suspend": True}},
        [],
        Status("waiting", "waits in the queue research"),
    ),
    (job(["SuccessCriteriaMet", "Complete"]), [ended()], Status("gone", "it ended without a last word", "succeeded")),
    (
        job(["Complete"]),
        [ended(message="the image has no Python 3.8 or newer\n")],
        Status("gone", "the image has no Python 3.8 or newer", "succeeded"),
    ),
    (job(["Failed"]), [ended(reason="OOMKilled")], Status("gone", "used more memory than it had asked for", "failed")),
    (job(["Created", "Running"]), [RUNNING], Status("there")),
    (
        job(["StartupPolicyCompleted", "Completed"]),
        [ended()],
        Status("gone", "it ended without a last word", "succeeded"),
    ),
    (job(["Created", "Succeeded"]), [ended()], Status("gone", "it ended without a last word", "succeeded")),
]


@pytest.mark.parametrize(("made", "pods", "told"), SEEN)
def test_seen(made: dict[str, Any], pods: list[dict[str, Any]], told: Status) -> None:
    assert seen(made, pods) == told


def test_a_run_is_over_when_all_its_containers_are() -> None:
    made = {"metadata": {}, "spec": {"completionMode": "Indexed", "completions": 2}, "status": {}}
    pods = [ended(exitCode=0), ended(exitCode=0)]
    for index, one in enumerate(pods):
        one["metadata"] = {"annotations": {"batch.kubernetes.io/job-completion-index": str(index)}}
    assert seen(made, pods).state == "gone"
    assert seen(made, pods[:1]).state == "waiting"
    pods[1]["status"]["initContainerStatuses"] = [{"name": "ship", "state": {"running": {}}}]
    pods[1]["status"]["phase"] = "Running"
    assert seen(made, pods) == Status("there")


def test_a_set_is_over_when_all_containers_of_its_job_are() -> None:
    inner = {"template": {"spec": {"completionMode": "Indexed", "completions": 1}}}
    made = {"metadata": {}, "spec": {"replicatedJobs": [inner]}, "status": {}}
    pods = [ended(exitCode=0)]
    pods[0]["metadata"] = {"annotations": {"batch.kubernetes.io/job-completion-index": "0"}}
    assert seen(made, pods).state == "gone"
    assert seen(made, []).state == "waiting"


def test_the_last_words_are_those_of_the_pilot_by_any_name() -> None:
    made = pod("Succeeded", containerStatuses=[{"name": "node", "state": {"terminated": {"message": "failed"}}}])
    assert seen(job(["Complete"]), [made]).reason == "failed"


def test_a_job_that_lost_nodes_too_often_says_so() -> None:
    made = job()
    made["status"]["conditions"] = [{"type": "Failed", "status": "True", "reason": "MaxFailedIndexesExceeded"}]
    assert seen(made, [ended(message="segfault")]) == Status("gone", "lost a node too often: segfault", "failed")


def test_a_running_container_does_not_wait() -> None:
    assert waiting_words(RUNNING) == ""
