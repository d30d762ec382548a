"""Where the API server keeps an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podwright.clients.kubernetes.kinds import KINDS

PLURALS = {
    "BuildConfig": "buildconfigs",
    "ConfigMap": "configmaps",
    "Event": "events",
    "ImageStream": "imagestreams",
    "LocalQueue": "localqueues",
    "Namespace": "namespaces",
    "NetworkPolicy": "networkpolicies",
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
    "PodGroup": "podgroups",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "Route": "routes",
    "Secret": "secrets",
    "SecurityContextConstraints": "securitycontextconstraints",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "StorageClass": "storageclasses",
    "Workload": "workloads",
}
PLURALS |= {kind.name: kind.plural for kind in KINDS.values()}
GROUPS = {"PodGroup": "scheduling.volcano.sh/v1beta1", "StorageClass": "storage.k8s.io/v1"}
GROUPS |= {kind.name: kind.version for kind in KINDS.values()}


def path_of(kind: str, namespace: str | None, name: str = "", group: str | None = None) -> str:
    """Return the path of an object, or without a name of all of its kind; without a namespace in the whole cluster."""
    version = group or GROUPS.get(kind, "v1")
    # Only the oldest group, which has no name, lies under /api.
    root = "/apis" if "/" in version else "/api"
    parts = [root, version]
    if namespace:
        parts += ["namespaces", namespace]
    parts.append(PLURALS[kind])
    if name:
        parts.append(name)
    return "/".join(parts)


def path_of_object(manifest: Mapping[str, Any]) -> str:
    """Return the path of an object as it describes itself."""
    metadata = manifest["metadata"]
    return path_of(manifest["kind"], metadata.get("namespace"), metadata["name"], manifest["apiVersion"])
