"""What a cluster gets beside Kubernetes itself: the manifests beside this file.

Every image has the name and version of its publisher; containerd looks for it in the pod's registry first, where
`up` puts it at a site with an archive.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from podwright.bringup.plan.accounts import quota_objects
from podwright.clients.kubernetes.manifest import read_manifest

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site
    from podwright.spec.hardware import Nic

Object = dict[str, Any]
_FOLDER = files("podwright.bringup.plan.kubernetes")


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


@cache
def definitions() -> str:
    """Return the kinds of the operators that runs over several nodes need, a line for each.

    They come from the same releases as the operators, without the words that explain each field.
    """
    folder = _FOLDER / "definitions"
    kinds = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return "".join(file.read_text("utf-8") for file in kinds)


def objects(site: Site) -> list[Object]:
    """Return the objects that need no chart."""
    # Where the GPU Operator brings the container toolkit, it brings this too.
    own_toolkit = site.pod.bringup.nvidia is not None and with_gpus(site)
    names = ["nvidia-runtime-class"] if own_toolkit else []
    names += ["mpi-operator", "jobset"]
    if with_rdma(site):
        names.append("rdma-shared-device-plugin")
    things: list[Object] = []
    for name in names:
        things += manifest(name)
    return things + quota_objects(site.pod)


def manifest(name: str) -> list[Object]:
    """Return the objects of a manifest."""
    return read_manifest(_FOLDER / "manifests" / f"{name}.yaml")
