"""One look at a cluster with the rights of a user: what may not be listed is left out, and told."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.kubernetes.api import Api, ApiError, Away
from podwright.clients.kubernetes.kubeconfig import Entry
from podwright.engines.kubernetes.usage import KubernetesUsage
from podwright.spec.problems import Refusal

LAB = "/namespaces/lab"
PODS, JOBS, NODES, EVENTS = "/api/v1{}/pods", "/apis/batch/v1{}/jobs", "/api/v1/nodes", "/api/v1{}/events"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta1{}/workloads"
NODE = {
    "metadata": {"name": "n1"},
    "spec": {},
    "status": {"allocatable": {"nvidia.com/gpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]},
}


class ListedCluster(Api):
    """An API server that has these lists, knows no others, and lets nobody look at what is forbidden."""

    def __init__(self, lists: dict[str, list[dict[str, Any]]], forbidden: Iterable[str] = ()) -> None:
        super().__init__(Entry("test", {}, {}, "lab", Path(), Path()))
        self.lists, self.forbidden = lists, set(forbidden)
        self.asked: list[str] = []

    def get(self, path: str, **query: str | int | bool) -> dict[str, Any]:
        self.asked.append(path)
        if path == "/apis":
            groups = {item.split("/")[2] for item in self.lists if item.startswith("/apis/")}
            return {"groups": [{"name": name, "versions": [{"groupVersion": f"{name}/v1beta1"}]} for name in groups]}
        if path in self.forbidden:
            raise ApiError(403, "Forbidden", f"you may not list {path}")
        if path not in self.lists:
            raise ApiError(404, "NotFound", f"there is no {path}")
        return {"metadata": {}, "items": self.lists[path]}


def held_job(name: str) -> dict[str, Any]:
    pod_spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 4}}}]}
    return {
        "metadata": {"name": name, "namespace": "lab", "uid": f"uid-{name}"},
        "spec": {"suspend": True, "template": {"spec": pod_spec}},
    }


def test_who_may_see_everything_sees_it_and_nothing_is_hidden() -> None:
    lists = {PODS.format(""): [], JOBS.format(""): [held_job("a")], NODES: [NODE], EVENTS.format(""): []}
    usage = KubernetesUsage(ListedCluster(lists), "lab")
    assert [(row.name, row.gpus, row.why) for row in usage.queue()] == [("a", 4, "is suspended")]
    assert [(row.node, row.state, row.gpus) for row in usage.nodes()] == [("n1", "free", 8)]
    assert usage.hidden() == []
    assert usage.past(3600) is None


def test_one_look_answers_for_the_queue_and_the_nodes() -> None:
    cluster = ListedCluster({PODS.format(""): [], JOBS.format(""): [], NODES: [NODE]})
    usage = KubernetesUsage(cluster, "lab")
    usage.nodes()
    usage.queue()
    usage.hidden()
    assert cluster.asked.count(PODS.format("")) == 1


def test_who_may_see_one_namespace_sees_that_and_is_told() -> None:
    lists = {PODS.format(LAB): [], JOBS.format(LAB): [held_job("a")], NODES: [NODE], EVENTS.format(LAB): []}
    forbidden = [PODS.format(""), JOBS.format(""), EVENTS.format("")]
    usage = KubernetesUsage(ListedCluster(lists, forbidden), "lab")
    assert [row.name for row in usage.queue()] == ["a"]
    assert usage.hidden() == ["only the namespace lab is seen: GPUs that others hold count as free"]


def test_who_may_see_nothing_is_told_that() -> None:
    forbidden = [PODS.format(""), PODS.format(LAB), JOBS.format(""), JOBS.format(LAB), NODES]
    usage = KubernetesUsage(ListedCluster({}, forbidden), "lab")
    assert (usage.queue(), usage.nodes()) == ([], [])
    assert usage.hidden() == [
        "you may not list nodes, so that they and their GPUs are not shown",
        "you may not list Kubernetes pods in the namespace lab",
    ]


def test_what_kueue_says_is_asked_where_there_is_kueue() -> None:
    workload = {
        "metadata": {"name": "w", "ownerReferences": [{"uid": "uid-a", "kind": "Job", "controller": True}]},
        "spec": {"queueName": "research"},
        "status": {"conditions": [{"type": "QuotaReserved", "status": "False", "message": "no room"}]},
    }
    lists = {PODS.format(""): [], JOBS.format(""): [held_job("a")], WORKLOADS.format(""): [workload]}
    (row,) = KubernetesUsage(ListedCluster(lists), "lab").queue()
    assert row.why == "waits in the queue research: no room"


def test_a_cluster_that_is_away_is_a_refusal() -> None:
    class AwayCluster(ListedCluster):
        def get(self, path: str, **query: str | int | bool) -> dict[str, Any]:
            raise Away("https://cluster cannot be reached: no route")

    with pytest.raises(Refusal, match="no route"):
        KubernetesUsage(AwayCluster({}), "lab").queue()
