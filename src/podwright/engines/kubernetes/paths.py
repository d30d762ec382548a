"""Where the API server keeps an object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLURALS = {
    "BuildConfig": "buildconfigs",
    "ConfigMap": "configmaps",
    "Event": "events",
    "ImageStream": "imagestreams",
    "Job": "jobs",
    "LocalQueue": "localqueues",
    "MPIJob": "mpijobs",
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
}
GROUPS = {"Job": "batch/v1", "MPIJob": "kubeflow.org/v2beta1", "LocalQueue": "kueue.x-k8s.io/v1beta1"}
GROUPS["StorageClass"] = "storage.k8s.io/v1"


def path_of(kind: str, namespace: str | None, name: str = "", group: str | None = None) -> str:
    version = group or GROUPS.get(kind, "v1")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{inside}/{PLURALS[kind]}" + (f"/{name}" if name else "")


def path_of_object(made: Mapping[str, Any]) -> str:
    metadata = made["metadata"]
    return path_of(made["kind"], metadata.get("namespace"), metadata["name"], made["apiVersion"])
