"""containerd as Kubernetes wants it, with the pod's own registry, and as its mirror where the site has no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.bringup.plan.kubernetes.images import PAUSE
from podwright.bringup.plan.template import text_of
from podwright.clients.http_client import basic

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

CERTIFICATES = "/etc/containerd/certs.d"
USER = "podwright"
"""Who the pod's registry knows its hosts as."""
_HEAD = "# Written by `podwright pod up`.\n"


def config_text(with_gpus: bool) -> str:
    """Return config.toml as containerd 1.6 and 1.7 of Debian 12 and 13 read it; with GPUs it knows NVIDIA's runtime."""
    text = _HEAD + text_of("containerd.toml", sandbox=PAUSE, certificates=CERTIFICATES)
    return text + text_of("containerd-nvidia.toml") if with_gpus else text


def registry_text(site: Site, password: str, is_default: bool = False) -> str:
    """Return hosts.toml of the pod's registry, for its own names, or as the default for those of all others.

    An image of any name is looked for here first. At a site with an archive that is all; elsewhere its publisher is
    asked for what is not here. The password goes to this host alone, by TLS of the pod's authority.
    """
    place = f"https://{site.registry}"
    alone = not is_default or site.pod.bringup.archive is not None
    server = f'server = "{place}"\n' if alone else ""
    return (
        f'{_HEAD}{server}[host."{place}"]\n'
        f'  capabilities = ["pull", "resolve"]\n'
        f'  ca = "/etc/containers/certs.d/{site.registry}/ca.crt"\n'
        f'  [host."{place}".header]\n'
        f'    authorization = "{basic(f"{USER}:{password}")}"\n'
    )
