"""What all jobs of a cluster do and what its nodes have: the API server is asked once for each kind of object.

What a user may not list for the whole cluster is listed in the namespace of the scheduler alone, and told.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from podwright.clients.kubernetes.api import Api, ApiError, asked_to
from podwright.clients.kubernetes.kinds import KINDS
from podwright.clients.kubernetes.paths import path_of
from podwright.engines.kubernetes.queue import ClusterSnapshot, SubmittedObject, node_rows, queue_rows
from podwright.engines.kubernetes.states import CREATION_FAILED
from podwright.engines.usage import NodeUse, Past, QueuedJob

ALIVE = "status.phase!=Succeeded,status.phase!=Failed"
KUEUE = "kueue.x-k8s.io"
AT_ONCE = 8

Items = list[dict[str, Any]]


class KubernetesUsage:
    """One look at a cluster, with the rights of the user."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._hidden: list[str] = []

    def queue(self) -> list[QueuedJob]:
        """Return our runs, and all else that holds GPUs or waits for them."""
        return queue_rows(self._snapshot)

    def nodes(self) -> list[NodeUse]:
        """Return the nodes that take work, or would if they were not away."""
        return node_rows(self._snapshot)

    def past(self, since_s: float) -> Past | None:
        """Return None: Kubernetes forgets what is over."""
        return None

    def hidden(self) -> list[str]:
        """Return what the user may not look at, in sentences."""
        _ = self._snapshot
        return list(self._hidden)

    @cached_property
    def _snapshot(self) -> ClusterSnapshot:
        with asked_to("answer"):
            return self._look()

    def _look(self) -> ClusterSnapshot:
        """Ask for everything side by side: the questions do not wait for each other."""
        versions = _versions(self._api.get("/apis"))
        kinds = [kind for kind in KINDS.values() if not kind.made_by or kind.version in versions]
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            nodes = pool.submit(self._list, "Node", None)
            pods = pool.submit(self._list_widely, "Pod", fieldSelector=ALIVE)
            events = pool.submit(self._failures)
            workloads = pool.submit(self._workloads, versions)
            lists = [pool.submit(self._list_widely, kind.name) for kind in kinds]
            jobs = []
            for kind, listed in zip(kinds, lists, strict=True):
                jobs += [SubmittedObject(kind.name, item) for item in listed.result()[0] or []]
        self._note_hidden(nodes.result(), *pods.result())
        return ClusterSnapshot(
            jobs=tuple(jobs),
            pods=tuple(pods.result()[0] or ()),
            nodes=tuple(nodes.result() or ()),
            events=tuple(events.result()),
            workloads=tuple(workloads.result()),
        )

    def _note_hidden(self, nodes: Items | None, pods: Items | None, everywhere: bool) -> None:
        if nodes is None:
            self._hidden.append("you may not list nodes, so that they and their GPUs are not shown")
        if pods is None:
            self._hidden.append(f"you may not list Kubernetes pods in the namespace {self._namespace}")
        elif not everywhere:
            self._hidden.append(f"only the namespace {self._namespace} is seen: GPUs that others hold count as free")

    def _failures(self) -> Items:
        """Return why Kubernetes pods could not be made, as those who would have made them say."""
        events: Items = []
        for reason in CREATION_FAILED:
            events += self._list_widely("Event", fieldSelector=f"reason={reason}")[0] or []
        return events

    def _workloads(self, versions: list[str]) -> Items:
        """Return what Kueue keeps of the jobs in its queues; it names the version that it likes best first."""
        version = next((version for version in versions if version.startswith(f"{KUEUE}/")), None)
        if version is None:
            return []
        return self._list_widely("Workload", version)[0] or []

    def _list_widely(self, kind: str, version: str | None = None, **query: str) -> tuple[Items | None, bool]:
        """Return the objects of all namespaces, else of the scheduler's own, and whether it was all."""
        items = self._list(kind, None, version, **query)
        if items is not None:
            return items, True
        return self._list(kind, self._namespace, version, **query), False

    def _list(self, kind: str, namespace: str | None, version: str | None = None, **query: str) -> Items | None:
        """Return None where the user may not look, or the cluster has no such kind."""
        try:
            return self._api.items(path_of(kind, namespace, group=version), **query)[0]
        except ApiError as error:
            if error.status in (403, 404):
                return None
            raise


def _versions(row: dict[str, Any]) -> list[str]:
    """Return the groups and versions that the API server serves beyond the core, such as kubeflow.org/v2beta1."""
    versions: list[str] = []
    for group in row.get("groups") or []:
        versions += [version["groupVersion"] for version in group["versions"]]
    return versions
