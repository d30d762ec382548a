"""What a lab's administrator tells the API server: the user's namespace and rights, storage, hooks, virtual nodes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from podwright.design.topology import UNIT_LABEL
from podwright.lab.kubernetes.configs import WEBHOOK_PORT
from podwright.lab.kubernetes.pki import USER
from podwright.lab.kubernetes.provisioner import PROVISIONER
from podwright.lab.kubernetes.shape import CLAIM, CONTROL_ADDRESS, NAMESPACE, STORAGE_CLASS

Object = dict[str, Any]

NODES = "/api/v1/nodes"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_HOOKS = "/apis/admissionregistration.k8s.io/v1"
_LOOK = ["get", "list", "watch"]
_EVERYTHING = [*_LOOK, "create", "update", "patch", "delete", "deletecollection"]
_JOBS = {"kubeflow.org": "mpijobs", "jobset.x-k8s.io": "jobsets"}
_READ = {
    "": ["nodes", "namespaces", "persistentvolumes"],
    "storage.k8s.io": ["storageclasses"],
    "scheduling.k8s.io": ["priorityclasses"],
    "node.k8s.io": ["runtimeclasses"],
    "apiextensions.k8s.io": ["customresourcedefinitions"],
}
_RDMA_PORTS = 8
_RDMA_SHARES = 100
# What a container that was given a device sees of it; one number stands for each GPU, shares are of one port.
DEVICE_FILES = {
    "nvidia.com/gpu": "/dev/nvidia%d",
    **{f"rdma/shared_ib{port}": f"/dev/infiniband/uverbs{port}" for port in range(_RDMA_PORTS)},
}
_PLAYED = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
_DGX = {"cpu": "256", "memory": "1Ti", "ephemeral-storage": "15Ti", "pods": "110"}

# What JobSet's controller is asked about: group, resource and version, by the name in the path of its hook.
_HOOKED = {"jobset": ("jobset.x-k8s.io", "jobsets", "v1alpha2"), "pod": ("", "pods", "v1")}


def first(authority: bytes) -> list[tuple[str, Object]]:
    """Return the objects that every lab has, each with the path of its kind, in the order in which they are needed."""
    return [*_namespace(), *_rights(), *_storage(), *_classes(), *_hooks(authority)]


def _named(kind: str, version: str, name: str, **more: Any) -> Object:
    metadata = {"name": name}
    if "namespace" in more:
        metadata["namespace"] = more.pop("namespace")
    metadata |= more.pop("metadata", {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **more}


def _namespace() -> list[tuple[str, Object]]:
    """Return the user's namespace: what runs there keeps to the strictest rules, as on a well kept cluster."""
    level = {f"pod-security.kubernetes.io/{what}": "restricted" for what in ("enforce", "warn")}
    return [("/api/v1/namespaces", _named("Namespace", "v1", NAMESPACE, metadata={"labels": level}))]


def _rights() -> list[tuple[str, Object]]:
    """Give the user what a namespace's user commonly has: all work in it, and a look at the cluster."""
    version = "rbac.authorization.k8s.io/v1"
    jobs = [
        {"apiGroups": [group], "resources": [kind, f"{kind}/status"], "verbs": _EVERYTHING}
        for group, kind in _JOBS.items()
    ]
    look = [{"apiGroups": [group], "resources": kinds, "verbs": _LOOK} for group, kinds in _READ.items()]
    into_edit = {"labels": {"rbac.authorization.k8s.io/aggregate-to-edit": "true"}}
    who = [{"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}]

    def role(name: str) -> Object:
        return {"kind": "ClusterRole", "name": name, "apiGroup": "rbac.authorization.k8s.io"}

    binding = {"subjects": who, "roleRef": role("edit")}
    looking = {"subjects": who, "roleRef": role("lab-look")}
    return [
        (f"{_RBAC}/clusterroles", _named("ClusterRole", version, "lab-jobs", rules=jobs, metadata=into_edit)),
        (f"{_RBAC}/clusterroles", _named("ClusterRole", version, "lab-look", rules=look)),
        (f"{_RBAC}/clusterrolebindings", _named("ClusterRoleBinding", version, "lab-look", **looking)),
        (
            f"{_RBAC}/namespaces/{NAMESPACE}/rolebindings",
            _named("RoleBinding", version, "lab-edit", namespace=NAMESPACE, **binding),
        ),
    ]


def _storage() -> list[tuple[str, Object]]:
    chosen = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    storage = {"provisioner": PROVISIONER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": STORAGE_CLASS,
        "resources": {"requests": {"storage": "10Gi"}},
    }
    return [
        (
            "/apis/storage.k8s.io/v1/storageclasses",
            _named("StorageClass", "storage.k8s.io/v1", STORAGE_CLASS, metadata=chosen, **storage),
        ),
        (
            f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims",
            _named("PersistentVolumeClaim", "v1", CLAIM, namespace=NAMESPACE, spec=claim),
        ),
    ]


def _classes() -> list[tuple[str, Object]]:
    """Return a priority that takes nodes from other runs, and the runtime class that GPU clusters have."""
    urgent = {"value": 1000, "description": "Takes nodes from runs without a priority"}
    return [
        (
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            _named("PriorityClass", "scheduling.k8s.io/v1", "urgent", **urgent),
        ),
        ("/apis/node.k8s.io/v1/runtimeclasses", _named("RuntimeClass", "node.k8s.io/v1", "nvidia", handler="runc")),
    ]


def _hooks(authority: bytes) -> list[tuple[str, Object]]:
    """Tell the API server to ask JobSet's controller, which is a program of this machine and no Kubernetes pod."""
    version = "admissionregistration.k8s.io/v1"
    code = base64.b64encode(authority).decode()

    def hook(action: str, kind: str, operations: list[str]) -> Object:
        group, resource, version = _HOOKED[kind]
        path = f"/{action}-{group.replace('.', '-')}-{version}-{kind}"
        webhook: Object = {
            "name": f"{action[0]}{kind}.kb.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"url": f"https://{CONTROL_ADDRESS}:{WEBHOOK_PORT}{path}", "caBundle": code},
            "rules": [
                {"apiGroups": [group], "apiVersions": [version], "operations": operations, "resources": [resource]}
            ],
        }
        if kind == "pod":
            member = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}
            webhook["objectSelector"] = {"matchExpressions": [member]}
        return webhook

    changing = [hook("mutate", "jobset", ["CREATE"]), hook("mutate", "pod", ["CREATE"])]
    checking = [hook("validate", "jobset", ["CREATE", "UPDATE"]), hook("validate", "pod", ["CREATE"])]
    return [
        (f"{_HOOKS}/{kind.lower()}s", _named(kind, version, "jobset", webhooks=hooks))
        for kind, hooks in (("MutatingWebhookConfiguration", changing), ("ValidatingWebhookConfiguration", checking))
    ]


def devices(gpus: int) -> dict[str, str]:
    """Return what a node offers beside cores and memory: GPUs, and the shares of its InfiniBand ports."""
    if not gpus:
        return {}
    return {**dict.fromkeys(DEVICE_FILES, str(_RDMA_SHARES)), "nvidia.com/gpu": str(gpus)}


def node_labels(host: str, gpus: int, units: Mapping[str, str]) -> dict[str, str]:
    """Return the labels that a GPU cluster's nodes have, and that of their scalable unit."""
    labels = {UNIT_LABEL: units[host]}
    if gpus:
        labels |= {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": str(gpus)}
    return labels


def virtual_node(host: str, gpus: int, units: Mapping[str, str]) -> Object:
    """Return a DGX node that KWOK plays; its taint keeps away whatever does not ask for played nodes."""
    room = {**_DGX, **devices(gpus)}
    names = {"kubernetes.io/hostname": host, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "kwok"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": host,
            "annotations": {_PLAYED["key"]: _PLAYED["value"]},
            "labels": {**names, **node_labels(host, gpus, units)},
        },
        "spec": {"taints": [_PLAYED]},
        "status": {"capacity": room, "allocatable": room},
    }
