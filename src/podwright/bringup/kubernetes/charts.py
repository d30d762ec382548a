"""Charts that a site installs with Helm: their versions, and the values that follow from the pod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.kubernetes.addons import with_gpus, with_rdma
from podwright.bringup.kubernetes.login import dex_values, with_ldap
from podwright.bringup.kubernetes.operators import image_of

if TYPE_CHECKING:
    from podwright.bringup.site import Site

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
    """Return the GPU Operator's values: the driver is the hosts' own where bring-up installs it."""
    nvidia = site.pod.bringup.nvidia
    repository = image_of(site, "nvidia")
    return {
        "driver": {
            "enabled": nvidia is None,
            "repository": repository,
            "kernelModuleType": "open",
            "rdma": {"enabled": with_rdma(site), "useHostMofed": True},
            "upgradePolicy": {"autoUpgrade": True, "maxParallelUpgrades": 1, "drain": {"enable": True}},
        },
        "toolkit": {"enabled": nvidia is None, "repository": repository},
        "devicePlugin": {"repository": repository},
        "dcgm": {"enabled": True, "repository": repository},
        "dcgmExporter": {"repository": repository, "serviceMonitor": {"enabled": site.has("monitoring")}},
        "mig": {"strategy": "mixed" if nvidia and nvidia.mig else "none"},
        "migManager": {"enabled": bool(nvidia and nvidia.mig), "repository": repository},
        "cdi": {"enabled": True},
        "nfd": {"enabled": False},
        "validator": {"repository": repository},
    }


def _network_operator(site: Site) -> Object:
    return {"nfd": {"enabled": False}, "operator": {"repository": image_of(site, "nvidia")}, "deployCR": False}


def _discovery(site: Site) -> Object:
    repository = image_of(site, "nfd/node-feature-discovery")
    sources = {"pci": {"deviceClassWhitelist": ["02", "0300", "0302"], "deviceLabelFields": ["vendor"]}}
    return {"image": {"repository": repository}, "worker": {"config": {"sources": sources}}}


def _kueue(site: Site) -> Object:
    frameworks = ["batch/job", "kubeflow.org/mpijob", "jobset.x-k8s.io/jobset"]
    manager = {"image": {"repository": image_of(site, "kueue/kueue"), "tag": "v0.15.0"}}
    return {"controllerManager": {"manager": manager}, "managerConfig": {"integrations": {"frameworks": frameworks}}}


def _trainer(site: Site) -> Object:
    return {"image": {"registry": site.registry}, "jobset": {"install": False}}


def _certificates(site: Site) -> Object:
    return {"crds": {"enabled": True}, "image": {"repository": image_of(site, "cert-manager/controller")}}


def _ingress(site: Site) -> Object:
    """Return values of the ingress: on every management host, by its own ports, since no balancer stands before it."""
    return {
        "controller": {
            "kind": "DaemonSet",
            "hostNetwork": True,
            "service": {"enabled": False},
            "image": {"registry": site.registry},
            "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
            "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        }
    }


def _prometheus(site: Site) -> Object:
    """Return values of the Prometheus stack; the pod's own Prometheus on its monitoring host takes in what it has."""
    prometheus = {"retention": "15d", "externalLabels": {"pod": site.name}}
    return {
        "global": {"imageRegistry": site.registry},
        "nodeExporter": {"enabled": False},
        "prometheus": {"prometheusSpec": {**prometheus, "serviceMonitorSelectorNilUsesHelmValues": False}},
    }


def _nfs(site: Site) -> Object:
    return {"image": {"nfs": {"repository": image_of(site, "csi/nfsplugin")}}, "feature": {"enableFSGroupPolicy": True}}


CHARTS = (
    HelmChart("node-feature-discovery", "0.19.0", "node-feature-discovery", _discovery),
    HelmChart("gpu-operator", "v26.7.0", "gpu-operator", _gpu_operator, with_gpus),
    HelmChart("network-operator", "26.7.0", "network-operator", _network_operator, with_rdma),
    HelmChart("cert-manager", "v1.19.1", "cert-manager", _certificates),
    HelmChart("dex", "0.24.0", "dex", dex_values, with_ldap),
    HelmChart("ingress-nginx", "4.14.0", "ingress-nginx", _ingress),
    HelmChart("kueue", "0.15.0", "kueue-system", _kueue),
    HelmChart("kubeflow-trainer", "2.1.0", "kubeflow-system", _trainer),
    HelmChart(
        "csi-driver-nfs",
        "4.12.0",
        "kube-system",
        _nfs,
        lambda site: any(storage.kind == "nfs" for storage in site.pod.storage),
    ),
    HelmChart("kube-prometheus-stack", "79.0.0", "monitoring", _prometheus, lambda site: site.has("monitoring")),
)
