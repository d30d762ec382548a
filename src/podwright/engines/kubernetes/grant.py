"""What an administrator gives a namespace once, so that runs may go there: rights, storage, and on OpenShift RDMA."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from podwright.engines.kubernetes import names, openshift
from podwright.engines.kubernetes.api import Api, ApiError, Away, refusal_of
from podwright.engines.kubernetes.kubeconfig import read_entry
from podwright.engines.kubernetes.paths import path_of_object
from podwright.engines.kubernetes.volumes import storage_objects

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod

Object = dict[str, Any]
ROLE = "podwright-run"
RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("configmaps", "secrets", "services"), ("get", "create", "patch", "delete")),
    ("", ("pods",), ("get", "list", "watch")),
    ("", ("pods/exec",), ("get", "create")),
    ("", ("pods/log", "events", "persistentvolumeclaims"), ("get", "list", "watch")),
    ("batch", ("jobs",), ("get", "list", "watch", "create", "patch", "delete")),
    ("kubeflow.org", ("mpijobs",), ("get", "list", "watch", "create", "patch", "delete")),
    ("kueue.x-k8s.io", ("localqueues",), ("get", "list")),
)
"""All that a user of runs needs in a namespace, and nothing beyond it."""


def grant_objects(pod: Pod, scheduler: KubernetesScheduler, namespace: str, group: str | None = None) -> list[Object]:
    """In the order in which they are applied; `group` are the users who may run things there."""
    made: list[Object] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}]
    made.append(_role(namespace))
    if group:
        made.append(_binding(namespace, group))
    for storage in pod.storage:
        if storage.storage_class or storage.server:
            made += storage_objects(pod, storage, namespace)
    if scheduler.dialect == "openshift":
        made += openshift.grant_objects(namespace)
    return made


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


def apply_objects(scheduler: KubernetesScheduler, objects: Iterable[Mapping[str, Any]], api: Api | None = None) -> None:
    """Server-side, one after the other; doing it again changes nothing."""
    reached = api or Api(read_entry(scheduler.kubeconfig, scheduler.context))
    for made in objects:
        try:
            reached.apply(path_of_object(made), made)
        except (ApiError, Away) as error:
            what = f"take the {made['kind']} {made['metadata']['name']}"
            raise refusal_of(error, what) from None
