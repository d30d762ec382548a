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
    "Node": "nodes",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
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
GROUPS = {"StorageClass": "storage.k8s.io/v1"}
GROUPS |= {kind.name: kind.version for kind in KINDS.values()}


def path_of(kind: str, namespace: str | None, name: str = "", group: str | None = None) -> str:
    version = group or GROUPS.get(kind, "v1")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{inside}/{PLURALS[kind]}" + (f"/{name}" if name else "")


def path_of_object(made: Mapping[str, Any]) -> str:
    metadata = made["metadata"]
    return path_of(made["kind"], metadata.get("namespace"), metadata["name"], made["apiVersion"])
