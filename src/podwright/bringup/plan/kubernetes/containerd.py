"""containerd as Kubernetes wants it, with the pod's own registry, and as its mirror where the site has no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.bringup.plan.template import text_of

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

CERTIFICATES = "/etc/containerd/certs.d"
_HEAD = "# Written by `podwright pod up`.\n"
PAUSE = "pause:3.10.1"


def config_text(site: Site, with_gpus: bool) -> str:
    """Return config.toml as containerd 1.6 and 1.7 of Debian 12 and 13 read it; with GPUs it knows NVIDIA's runtime."""
    # Without a registry of the pod's it is containerd's own choice.
    sandbox = f'  sandbox_image = "{site.registry}/{PAUSE}"\n' if site.has("registry") else ""
    text = _HEAD + text_of("containerd.toml", sandbox=sandbox, certificates=CERTIFICATES)
    return text + text_of("containerd-nvidia.toml") if with_gpus else text


def registry_text(site: Site) -> str:
    """Return hosts.toml of the pod's registry, for its own names and for all others.

    As `_default` it makes a site without a network whole: an image of any name is looked for here, and nowhere else.
    """
    return (
        f'{_HEAD}server = "https://{site.registry}"\n'
        f'[host."https://{site.registry}"]\n'
        f'  capabilities = ["pull", "resolve"]\n'
        f'  ca = "/etc/containers/certs.d/{site.registry}/ca.crt"\n'
    )
