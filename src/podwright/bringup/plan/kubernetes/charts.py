"""Charts that a site installs with Helm: their versions, and the values that follow from the pod.

No value names an image: containerd looks for an image of any name in the pod's registry, where the pod has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.kubernetes.addons import with_gpus, with_rdma
from podwright.bringup.plan.kubernetes.kubeadm import POD_NETWORK
from podwright.bringup.plan.kubernetes.login import dex_values, with_ldap
from podwright.clients.kubernetes.manifest import yaml_text

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

Object = dict[str, Any]


@dataclass(frozen=True)
class HelmChart:
    """A chart that a site installs with Helm, at one version, with values that follow from the pod."""

    name: str
    version: str
    namespace: str
    values: Callable[[Site], Object]
    wanted: Callable[[Site], bool] = lambda site: True


def charts(site: Site) -> list[HelmChart]:
    """Return the charts that this pod is to have, in the order in which they are installed."""
    return [chart for chart in CHARTS if chart.wanted(site)]


def _gpu_operator(site: Site) -> Object:
    """Return the GPU Operator's values: driver, toolkit and MIG are the hosts' own where bring-up installs them."""
    nvidia = site.pod.bringup.nvidia
    return {
        "driver": {
            "enabled": nvidia is None,
            "kernelModuleType": "open",
            "rdma": {"enabled": with_rdma(site), "useHostMofed": True},
            "upgradePolicy": {"autoUpgrade": True, "maxParallelUpgrades": 1, "drain": {"enable": True}},
        },
        "toolkit": {"enabled": nvidia is None},
        "dcgm": {"enabled": True},
        "dcgmExporter": {"serviceMonitor": {"enabled": site.has("monitoring")}},
        "mig": {"strategy": "mixed" if nvidia and nvidia.mig else "none"},
        # It would make whole GPUs again of those that hosts have cut.
        "migManager": {"enabled": False},
        "cdi": {"enabled": True},
        "nfd": {"enabled": False},
    }


def _network(site: Site) -> Object:
    """Return values of the network of Kubernetes' pods; runs are kept apart by policies, which it must hold to."""
    return {"podCidr": POD_NETWORK, "netpol": {"enabled": True}}


def _network_operator(site: Site) -> Object:
    return {"nfd": {"enabled": False}}


def _discovery(site: Site) -> Object:
    sources = {"pci": {"deviceClassWhitelist": ["02", "0300", "0302"], "deviceLabelFields": ["vendor"]}}
    return {"worker": {"config": {"sources": sources}}}


# The kinds that runs are.
_QUEUED = ["batch/job", "kubeflow.org/mpijob", "jobset.x-k8s.io/jobset", "trainer.kubeflow.org/trainjob"]


def _kueue(site: Site) -> Object:
    """Return Kueue's values; the chart takes its configuration as one text, and none of its own beside it."""
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443"},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "integrations": {"frameworks": _QUEUED},
    }
    return {"managerConfig": {"controllerManagerConfigYaml": yaml_text([config])}}


def _trainer(site: Site) -> Object:
    return {"jobset": {"install": False}}


def _certificates(site: Site) -> Object:
    return {"crds": {"enabled": True}}


def _ingress(site: Site) -> Object:
    """Return values of the ingress: on every management host, by its own ports, since no balancer stands before it."""
    return {
        "deployment": {"kind": "DaemonSet"},
        # A host's port is free for the next only when the last is gone.
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
        "service": {"enabled": False},
        "ports": {"web": {"hostPort": 80}, "websecure": {"hostPort": 443}},
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
    }


def _prometheus(site: Site) -> Object:
    """Return values of the Prometheus stack; the pod's own Prometheus on its monitoring host takes in what it has."""
    prometheus = {"retention": "15d", "externalLabels": {"pod": site.name}}
    return {
        "nodeExporter": {"enabled": False},
        "prometheus": {"prometheusSpec": {**prometheus, "serviceMonitorSelectorNilUsesHelmValues": False}},
    }


def _nfs(site: Site) -> Object:
    return {"feature": {"enableFSGroupPolicy": True}}


CHARTS = (
    HelmChart("flannel", "v0.27.4", "kube-flannel", _network),
    HelmChart("node-feature-discovery", "0.19.0", "node-feature-discovery", _discovery),
    HelmChart("gpu-operator", "v26.7.0", "gpu-operator", _gpu_operator, with_gpus),
    HelmChart("network-operator", "26.7.0", "network-operator", _network_operator, with_rdma),
    HelmChart("cert-manager", "v1.19.1", "cert-manager", _certificates),
    HelmChart("dex", "0.24.0", "dex", dex_values, with_ldap),
    HelmChart("traefik", "41.4.0", "traefik", _ingress),
    HelmChart("kueue", "0.15.0", "kueue-system", _kueue),
    HelmChart("kubeflow-trainer", "2.2.0", "kubeflow-system", _trainer),
    HelmChart(
        "csi-driver-nfs",
        "4.13.3",
        "kube-system",
        _nfs,
        lambda site: any(storage.kind == "nfs" for storage in site.pod.storage),
    ),
    HelmChart("kube-prometheus-stack", "79.0.0", "monitoring", _prometheus, lambda site: site.has("monitoring")),
)
