"""The images that a cluster itself needs, under their publishers' names: kubeadm's own, and those of our add-ons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

PUBLISHER = "registry.k8s.io"
PAUSE = f"{PUBLISHER}/pause:3.10.1"
_PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy")


class ReleaseParts(NamedTuple):
    """What a minor release of Kubernetes is made with by kubeadm, by the tags of images."""

    etcd: str
    coredns: str


# From `cmd/kubeadm/app/constants` of v1.34.2 and v1.35.4; a test compares the latter with kubeadm itself.
_RELEASES: Mapping[str, ReleaseParts] = {
    "1.34": ReleaseParts("3.6.5-0", "v1.12.1"),
    "1.35": ReleaseParts("3.6.6-0", "v1.13.1"),
}


def parts_of(site: Site) -> ReleaseParts | None:
    """Return what the pod's release is made with; None of one that this table does not have."""
    return _RELEASES.get(site.kubernetes_version.rpartition(".")[0])


def cluster_images(site: Site) -> list[str]:
    """Return what kubeadm starts, each once; refuse a release whose images nobody looked up."""
    parts = parts_of(site)
    if parts is None:
        known = ", ".join(_RELEASES)
        hint = f"the images of {known} are known; leave `archive` out, and hosts ask {PUBLISHER} themselves"
        raise refuse(
            f"the images of Kubernetes {site.kubernetes_version} are not known",
            hint=hint,
            field="bringup.versions.kubernetes",
        )
    own = [f"{PUBLISHER}/{name}:v{site.kubernetes_version}" for name in _PARTS]
    return [*own, f"{PUBLISHER}/coredns/coredns:{parts.coredns}", PAUSE, f"{PUBLISHER}/etcd:{parts.etcd}"]


def images_in(objects: list[dict[str, Any]]) -> list[str]:
    """Return the images that objects start, each once."""
    names: dict[str, None] = {}
    for thing in objects:
        for container in thing.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            names[container["image"]] = None
    return list(names)
