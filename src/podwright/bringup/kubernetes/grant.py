"""What an administrator gives a namespace once, so that runs may go there: rights, storage, and on OpenShift RDMA."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.kubernetes import openshift
from podwright.bringup.kubernetes.volumes import storage_objects
from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.apply import ENFORCED, Applied, apply_objects, reach
from podwright.clients.kubernetes.kinds import KINDS
from podwright.spec.problems import refuse, short

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod

Object = dict[str, Any]
ROLE = "podwright-run"
RDMA_REASON = "RDMA needs memory that stays in place (IPC_LOCK), which the Pod Security baseline forbids"
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
OF_RUNS = ("get", "list", "watch", "create", "patch", "delete", "deletecollection")
RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("configmaps", "services"), ("get", "create", "patch", "delete")),
    # Nothing reads a Secret back.
    ("", ("secrets",), ("create", "patch", "delete")),
    ("networking.k8s.io", ("networkpolicies",), ("get", "create", "patch", "delete")),
    ("", ("pods",), ("get", "list", "watch")),
    ("", ("pods/exec", "pods/portforward"), ("get", "create")),
    ("", ("pods/log", "events", "persistentvolumeclaims"), ("get", "list", "watch")),
    *((kind.group, (kind.plural,), OF_RUNS) for kind in KINDS.values()),
    ("scheduling.volcano.sh", ("podgroups",), ("get", "create", "patch", "delete")),
    ("route.openshift.io", ("routes",), ("get", "create", "patch", "delete")),
    ("kueue.x-k8s.io", ("localqueues", "workloads"), ("get", "list")),
)
"""All that a user of runs needs in a namespace, and nothing beyond it."""


@dataclass(frozen=True)
class GrantRequest:
    """What a namespace is to be given: `group` are the users who may run things there.

    `rdma`: containers may keep memory in place.
    """

    pod: Pod
    scheduler: KubernetesScheduler
    namespace: str
    group: str | None = None
    rdma: bool = False

    def objects(self) -> list[Object]:
        """Return what is applied, in its order."""
        return grant_objects(self.pod, self.scheduler, self.namespace, self.group, self.rdma)


@dataclass(frozen=True)
class GrantResult:
    """What became of each object."""

    request: GrantRequest
    dry_run: bool
    objects: list[Applied]

    def as_json(self) -> dict[str, Any]:
        """Return what `pod grant --json` prints."""
        request = self.request
        document = {"pod": request.pod.name, "namespace": request.namespace, "dry_run": self.dry_run}
        return {**document, "objects": [item.as_json() for item in self.objects]}


def apply_grant(request: GrantRequest, dry_run: bool = False) -> GrantResult:
    """Apply what a namespace needs for runs; nothing changes in a dry run."""
    with closing(reach(request.scheduler)) as api:
        return GrantResult(request, dry_run, apply_objects(api, request.objects(), dry_run))


def grant_objects(
    pod: Pod, scheduler: KubernetesScheduler, namespace: str, group: str | None = None, rdma: bool = False
) -> list[Object]:
    """Return the objects in the order in which they are applied."""
    if NAMESPACE.fullmatch(namespace) is None:
        hint = "lower-case letters, digits and dashes, at most 63"
        raise refuse(f'"{short(namespace)}" cannot be the name of a namespace', hint=hint, field="--namespace")
    objects: list[Object] = [_namespace(scheduler, namespace, rdma)]
    objects.append(_role(namespace))
    if group:
        objects.append(_binding(namespace, group))
    for storage in pod.storage:
        if storage.storage_class or storage.server:
            objects += storage_objects(pod, storage, namespace)
    if scheduler.dialect == "openshift":
        objects += openshift.grant_objects(namespace)
    return objects


def _namespace(scheduler: KubernetesScheduler, namespace: str, rdma: bool) -> Object:
    """Return the namespace with its Pod Security; on OpenShift security context constraints decide it."""
    metadata: Object = {"name": namespace}
    if scheduler.dialect != "openshift":
        metadata["labels"] = {ENFORCED: "privileged" if rdma else "restricted"}
        if rdma:
            metadata["annotations"] = {names.REASON: RDMA_REASON}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _role(namespace: str) -> Object:
    rules = [{"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in RULES]
    metadata = {"name": ROLE, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": names.MANAGER}}
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}


def _binding(namespace: str, group: str) -> Object:
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {**_role(namespace)["metadata"]},
        "roleRef": {"apiGroup": api, "kind": "Role", "name": ROLE},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": group}],
    }
