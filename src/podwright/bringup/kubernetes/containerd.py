"""containerd as Kubernetes wants it, with the pod's own registry, and as its mirror where the site has no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.bringup.site import Site

CERTIFICATES = "/etc/containerd/certs.d"
_HEAD = "# Written by `podwright pod up`.\n"
# containerd 1.6, which Debian 12 has, and 2.x name the same things differently.
_OLD = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{sandbox}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{certificates}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
_NEW = """\
version = 3
[plugins."io.containerd.cri.v1.images"]
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{sandbox}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{certificates}"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
_NVIDIA_OLD = """\
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
      BinaryName = "/usr/bin/nvidia-container-runtime"
      SystemdCgroup = true
"""
_NVIDIA_NEW = _NVIDIA_OLD.replace("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
# By the operating system: what its own packages have.
_TEXTS = {"debian-12": (_OLD, _NVIDIA_OLD), "debian-13": (_NEW, _NVIDIA_NEW)}
PAUSE = "pause:3.10"


def config_text(site: Site, with_gpus: bool) -> str:
    """Return config.toml; a node with GPUs also knows NVIDIA's runtime."""
    plain, nvidia = _TEXTS[site.pod.bringup.os]
    sandbox = f"{site.registry}/kubernetes/{PAUSE}" if site.has("registry") else PAUSE
    text = _HEAD + plain.format(sandbox=sandbox, certificates=CERTIFICATES)
    return text + nvidia if with_gpus else text


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
