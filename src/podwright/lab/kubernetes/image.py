"""The images of a lab, made without any image tool: a small Debian with Python, MPI and ssh, and one that only pauses.

The Debian is made once, by mmdebstrap from the sources this machine uses, and kept in the cache as a layer.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from podwright.clients.registry import digest_of
from podwright.files.whole import whole_path
from podwright.lab import debian
from podwright.lab.base import Say
from podwright.lab.kubernetes.binaries import cache_root, locked

_PACKAGES = ("python3", "openmpi-bin", "openssh-server", "openssh-client", "ca-certificates", "iproute2", "procps")
_LEFT_OUT = ("doc", "info", "locale", "man")
# Others may pass through /root: an environment may lie below it, and is mounted there.
_HOOK = 'chmod 755 "$1/root" && rm -f "$1"/etc/ssh/ssh_host_* && mkdir -p "$1/run/sshd"'
_SKIPPED = "output/dev"  # containers get devices of their own
_MEDIA = "application/vnd.oci.image"
MANIFEST = f"{_MEDIA}.manifest.v1+json"
_CHUNK = 1 << 20
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class PackedLayer:
    """A compressed tar of files, with the digests that it has packed and unpacked."""

    file: Path
    digest: str
    unpacked: str

    def descriptor(self) -> dict[str, Any]:
        """Return how a manifest names it."""
        return {"mediaType": f"{_MEDIA}.layer.v1.tar+gzip", "digest": self.digest, "size": self.file.stat().st_size}


@dataclass(frozen=True)
class Image:
    """An image of one layer, as a registry takes it."""

    layer: PackedLayer
    config: bytes

    def manifest(self) -> bytes:
        """Return the manifest, which names config and layer by their digests."""
        config = {
            "mediaType": f"{_MEDIA}.config.v1+json",
            "digest": digest_of(self.config),
            "size": len(self.config),
        }
        layers = [self.layer.descriptor()]
        return _json({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers})


def _json(data: Any) -> bytes:
    return json.dumps(data, sort_keys=True).encode()


def image(layer: PackedLayer, settings: Mapping[str, Any]) -> Image:
    """Return the image of a layer and what a container of it starts with."""
    config = {
        "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [layer.unpacked]},
        # Optional by the standard, but tools that add a layer count on one entry for each that is there.
        "history": [{"created_by": "podwright lab"}],
    }
    return Image(layer, _json(config))


def base(say: Say) -> Image:
    """Return the image that workloads without one of their own run in; the environment of this Python comes first."""
    path = f"{sys.prefix}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return image(base_layer(say), {"Env": [f"PATH={path}", "LANG=C.UTF-8"], "Cmd": ["/bin/bash"], "User": "1000"})


def pause(program: Path) -> Image:
    """Return the image of the container that every Kubernetes pod has."""
    return lone("pause", program, "65535")


def lone(name: str, program: Path, user: str) -> Image:
    """Return an image that has nothing but one program, which needs nothing else, for a user of this number."""
    folder = cache_root() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = program.stat().st_size, 0o755
        with program.open("rb") as file:
            tar.addfile(entry, file)
    kept = folder / f"{name}-{hashlib.sha256(packed.getvalue()).hexdigest()[:8]}.tar.gz"
    if not kept.exists():
        kept.write_bytes(packed.getvalue())
    return image(_layer(kept), {"Entrypoint": [f"/{name}"], "User": user})


def base_layer(say: Say) -> PackedLayer:
    """Return the layer of the base image from the cache, and make it first where it is not there."""
    suite = debian.suite()
    key = hashlib.sha256(_json([suite, _PACKAGES, _LEFT_OUT, _HOOK, _SKIPPED])).hexdigest()[:8]
    kept = cache_root() / "images" / f"base-{suite}-{key}.tar.gz"
    if not kept.exists():
        with locked("image"):
            if not kept.exists():
                say("image", f"a Debian ({suite}) with Python, MPI and ssh, once: about a minute, 85 MB")
                _make(kept, suite)
    return _layer(kept)


def _make(kept: Path, suite: str) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    with whole_path(kept) as part:
        debian.make(part, suite, _PACKAGES, _LEFT_OUT, [f"--skip={_SKIPPED}", f"--customize-hook={_HOOK}"])


def _layer(kept: Path) -> PackedLayer:
    """Return a layer with its digests, which are counted once and kept beside it."""
    note = kept.with_name(f"{kept.name}.json")
    if not note.exists():
        with kept.open("rb") as packed, gzip.open(kept) as unpacked:
            note.write_text(json.dumps({"digest": _digest(packed), "unpacked": _digest(unpacked)}))
    return PackedLayer(kept, **json.loads(note.read_text()))


def _digest(file: BinaryIO | gzip.GzipFile) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"
