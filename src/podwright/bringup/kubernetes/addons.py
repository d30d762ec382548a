"""What a cluster gets beside Kubernetes itself, as objects of our own making.

Every image comes from the pod's registry, under the name and version that stand here; `mirror make` brings it there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes import names

if TYPE_CHECKING:
    from podwright.bringup.site import Site
    from podwright.spec.hardware import Nic

Object = dict[str, Any]
_LABELS = {"app.kubernetes.io/managed-by": names.MANAGER}
MELLANOX = "15b3"


def with_gpus(site: Site) -> bool:
    """Return whether a node of the cluster has GPUs."""
    return any(site.pod.model_of(host).gpus is not None for host in site.kubernetes_hosts)


def with_rdma(site: Site) -> bool:
    """Return whether a node of the cluster has cards for the compute fabric."""
    return any(nic.kind == "compute" for nic in _nics(site))


def _nics(site: Site) -> list[Nic]:
    nics: list[Nic] = []
    for host in sorted(site.kubernetes_hosts):
        nics += site.pod.model_of(host).nics
    return nics


def image_of(site: Site, path: str) -> str:
    """Return an image by the name that it has in the pod's registry."""
    return f"{site.registry}/{path}" if site.has("registry") else path


def objects(site: Site) -> list[Object]:
    """Return the objects of our own making that need no chart."""
    # Where the GPU Operator brings the container toolkit, it brings this too.
    own_toolkit = site.pod.bringup.nvidia is not None and with_gpus(site)
    things = [_runtime_class()] if own_toolkit else []
    things += mpi_operator(site)
    if with_rdma(site):
        things += rdma_plugin(site)
    return things


def _runtime_class() -> Object:
    metadata = {"name": "nvidia", "labels": _LABELS}
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata, "handler": "nvidia"}


# What the operator does to what, beyond its own kind.
_MPI_RULES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("", ("configmaps", "secrets", "services"), ("create", "list", "watch", "update", "get", "patch")),
    ("", ("pods",), ("create", "get", "list", "watch", "delete", "update", "patch")),
    ("", ("events",), ("create", "patch")),
    ("batch", ("jobs",), ("create", "list", "watch", "update", "get", "delete", "patch")),
    ("kubeflow.org", ("mpijobs", "mpijobs/finalizers", "mpijobs/status"), ("*",)),
    ("scheduling.k8s.io", ("priorityclasses",), ("get", "list", "watch")),
    ("scheduling.volcano.sh", ("podgroups",), ("*",)),
    ("coordination.k8s.io", ("leases",), ("*",)),
)


def mpi_operator(site: Site) -> list[Object]:
    """Return the MPI Operator; its kind comes with it from the same release, as a file that `mirror make` keeps."""
    name = "mpi-operator"
    here = {"name": name, "namespace": name, "labels": {**_LABELS, "app": name}}
    container = {
        "name": name,
        "image": image_of(site, "mpi-operator/mpi-operator:0.8.0"),
        "args": ["-alsologtostderr", f"--lock-namespace={name}"],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": _confined(),
    }
    api, rules = (
        "rbac.authorization.k8s.io",
        [{"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in _MPI_RULES],
    )
    wide = {"name": name, "labels": _LABELS}
    bound = {
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": name}],
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _LABELS}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": here},
        {"apiVersion": f"{api}/v1", "kind": "ClusterRole", "metadata": wide, "rules": rules},
        {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": wide, **bound},
        _deployment(here, container),
    ]


def _deployment(metadata: Mapping[str, Any], container: Object) -> Object:
    app = {"app": metadata["name"]}
    spec = {
        "serviceAccountName": metadata["name"],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        "containers": [container],
    }
    template = {"metadata": {"labels": app}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": dict(metadata),
        "spec": {"replicas": 1, "selector": {"matchLabels": app}, "template": template},
    }


def _confined() -> Object:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


def rdma_plugin(site: Site) -> list[Object]:
    """Return the plugin that shares the InfiniBand cards of a node among its containers."""
    name, place = "rdma-shared-device-plugin", "kube-system"
    entry = {"resourceName": "rdma_shared", "rdmaHcaMax": 64, "selectors": {"vendors": [MELLANOX]}}
    config = json.dumps({"periodicUpdateInterval": 300, "configList": [entry]}, indent=1)
    here = {"name": name, "namespace": place, "labels": {**_LABELS, "app": name}}
    folders = {"device-plugin": "/var/lib/kubelet/device-plugins", "devices": "/dev"}
    container = {
        "name": name,
        "image": image_of(site, "rdma/k8s-rdma-shared-dev-plugin:1.5.3"),
        "securityContext": {"privileged": True},
        "volumeMounts": [
            *({"name": folder, "mountPath": path} for folder, path in folders.items()),
            {"name": "config", "mountPath": "/k8s-rdma-shared-dev-plugin"},
        ],
    }
    volumes: list[Object] = [{"name": folder, "hostPath": {"path": path}} for folder, path in folders.items()]
    volumes.append(
        {"name": "config", "configMap": {"name": name, "items": [{"key": "config.json", "path": "config.json"}]}}
    )
    app = {"app": name}
    spec = {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "containers": [container],
        "volumes": volumes,
    }
    plugin = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": here,
        "spec": {"selector": {"matchLabels": app}, "template": {"metadata": {"labels": app}, "spec": spec}},
    }
    return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": here, "data": {"config.json": config}}, plugin]
