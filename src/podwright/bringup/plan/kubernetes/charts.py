"""Charts that a site installs with Helm: their versions, and the values that follow from the pod.

No value names an image: containerd looks for an image of any name in the pod's registry, where the pod has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import yaml

from podwright.bringup.plan.kubernetes.addons import with_gpus, with_rdma
from podwright.bringup.plan.kubernetes.kubeadm import POD_NETWORK
from podwright.bringup.plan.kubernetes.login import dex_values, with_ldap

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

Object = dict[str, Any]


@dataclass(frozen=True)
class HelmChart:
    """A chart that a site installs with Helm, at one version, with its values."""

    name: str
    version: str
    namespace: str
    values: Object


def charts(site: Site) -> list[HelmChart]:
    """Return the charts that this pod is to have, in the order in which they are installed."""
    chosen = []
    for row in yaml.safe_load((files("podwright.bringup.plan.kubernetes") / "charts.yaml").read_text()):
        name = row["name"]
        if name not in _ONLY_WITH or _ONLY_WITH[name](site):
            values = _VALUES[name](site) if name in _VALUES else row["values"]
            chosen.append(HelmChart(name, row["version"], row["namespace"], values))
    return chosen


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


def _prometheus(site: Site) -> Object:
    """Return values of the Prometheus stack; the pod's own Prometheus on its monitoring host takes in what it has."""
    prometheus = {"retention": "15d", "externalLabels": {"pod": site.name}}
    return {
        "nodeExporter": {"enabled": False},
        "prometheus": {"prometheusSpec": {**prometheus, "serviceMonitorSelectorNilUsesHelmValues": False}},
    }


# Values that follow from the pod; those of the other charts are in the list itself.
_VALUES: Mapping[str, Callable[[Site], Object]] = {
    "flannel": _network,
    "gpu-operator": _gpu_operator,
    "dex": dex_values,
    "kube-prometheus-stack": _prometheus,
}
# What only some pods have.
_ONLY_WITH: Mapping[str, Callable[[Site], bool]] = {
    "gpu-operator": with_gpus,
    "network-operator": with_rdma,
    "dex": with_ldap,
    "csi-driver-nfs": lambda site: any(storage.kind == "nfs" for storage in site.pod.storage),
    "kube-prometheus-stack": lambda site: site.has("monitoring"),
}
