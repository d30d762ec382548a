"""What a cluster gets beside Kubernetes itself, as objects of our own making.

Every image comes from the pod's registry where it has one, under the name and version that stand here: those of whoever
publishes it, so that an archive whose `bringup.images` names it has it under the same name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.kubernetes.operators import LABELS, image_of, jobset, mpi_operator

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site
    from podwright.spec.hardware import Nic

Object = dict[str, Any]
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


def objects(site: Site) -> list[Object]:
    """Return the objects of our own making that need no chart."""
    # Where the GPU Operator brings the container toolkit, it brings this too.
    own_toolkit = site.pod.bringup.nvidia is not None and with_gpus(site)
    things = [_runtime_class()] if own_toolkit else []
    things += [*mpi_operator(site), *jobset(site)]
    if with_rdma(site):
        things += rdma_plugin(site)
    return things


def _runtime_class() -> Object:
    metadata = {"name": "nvidia", "labels": LABELS}
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata, "handler": "nvidia"}


def rdma_plugin(site: Site) -> list[Object]:
    """Return the plugin that shares the InfiniBand cards of a node among its containers."""
    name, place = "rdma-shared-device-plugin", "kube-system"
    entry = {"resourceName": "rdma_shared", "rdmaHcaMax": 64, "selectors": {"vendors": [MELLANOX]}}
    config = json.dumps({"periodicUpdateInterval": 300, "configList": [entry]}, indent=1)
    here = {"name": name, "namespace": place, "labels": {**LABELS, "app": name}}
    folders = {"device-plugin": "/var/lib/kubelet/device-plugins", "devices": "/dev"}
    container = {
        "name": name,
        "image": image_of(site, "mellanox/k8s-rdma-shared-dev-plugin:1.5.3"),
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
