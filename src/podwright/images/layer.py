"""An image with the code of a run as one more layer: no program builds it, and nothing of the image itself is fetched.

The registry keeps the layers of the image already. What is sent is the code, and small texts that name all of them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from podwright.clients.registry import (
    INDEXES,
    MANIFESTS,
    OCI,
    Manifest,
    Reference,
    Registry,
    RegistryError,
    digest_of,
    parse,
)

LAYERS = dict(
    zip(MANIFESTS, (f"{OCI}.layer.v1.tar+gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip"), strict=True)
)
"""What a layer is called, by the kind of the manifest that names it."""
LEVEL = 1
"""Of compression: what is large here is data more often than text, and the user waits for it."""


@dataclass(frozen=True)
class Layer:
    """A layer packed as it is sent, and the digest that it has unpacked."""

    packed: bytes = field(repr=False)
    unpacked: str


@dataclass(frozen=True)
class Appended:
    """An image under the tag that its parts give it, with what the registry lacks of it, in the order of sending."""

    base: Reference
    tag: str
    top: Manifest
    inner: tuple[Manifest, ...] = ()
    blobs: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def image(self) -> str:
        """Return the name under which it is always the same image."""
        return f"{self.base.place}@{self.top.digest}"


def prepare(image: str, code: bytes, path: str) -> Appended:
    """Return the image with this code as the file `path`; nothing is sent.

    Equal code on an equal image is found where it was put before.
    """
    reference = parse(image)
    registry = Registry(reference.host, reference.repository)
    base = registry.manifest(reference.tag)
    if base is None:
        raise RegistryError(404, f"there is no image {image}")
    unpacked = layer_tar(code, path)
    tag = tag_of(base.digest, digest_of(unpacked))
    there = registry.manifest(tag)
    if there is not None:
        return Appended(reference, tag, there)
    layer = Layer(gzip.compress(unpacked, LEVEL, mtime=0), digest_of(unpacked))
    return _appended(reference, tag, _top(registry, base), layer)


def send(appended: Appended) -> None:
    """Send what the registry lacks of an image; what is there is not sent again.

    Blobs go first: a registry takes no manifest whose parts it does not have.
    """
    if not appended.blobs:
        return
    registry = Registry(appended.base.host, appended.base.repository)
    for blob in appended.blobs:
        registry.put_blob(blob)
    for manifest in appended.inner:
        registry.put_manifest(manifest.digest, manifest)
    registry.put_manifest(appended.tag, appended.top)


def tag_of(base: str, unpacked: str) -> str:
    """Return the tag of an image, from what is in it.

    Packed bytes do not count: another release of the same library packs them differently.
    """
    return f"podwright-{hashlib.sha256(f'{base} {unpacked}'.encode()).hexdigest()[:24]}"


def layer_tar(code: bytes, path: str) -> bytes:
    """Return a tar of one file that anybody may read, in folders that anybody may enter; the same bytes each time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        *folders, _ = path.strip("/").split("/")
        for count in range(1, len(folders) + 1):
            folder = tarfile.TarInfo("/".join(folders[:count]))
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        file = tarfile.TarInfo(path.strip("/"))
        file.size, file.mode = len(code), 0o444
        archive.addfile(file, io.BytesIO(code))
    return buffer.getvalue()


@dataclass(frozen=True)
class _Image:
    """One image of one platform, or of all where there is but one; `row` is how an index names it."""

    manifest: Manifest
    config: bytes
    row: Mapping[str, Any] | None = None


def _top(registry: Registry, base: Manifest) -> tuple[Manifest, list[_Image]]:
    """Return the images behind a name: one, or one for each platform."""
    if base.kind in MANIFESTS:
        return base, [_Image(base, registry.blob(json.loads(base.raw)["config"]["digest"]))]
    if base.kind not in INDEXES:
        raise RegistryError(0, f"{registry.host} has the image in a form that is not known: {base.kind}")
    return base, list(_of_index(registry, json.loads(base.raw)))


def _of_index(registry: Registry, index: Mapping[str, Any]) -> Iterator[_Image]:
    """Yield the images of an index.

    What is no image of a platform (a signature, a list of contents) belongs to the old image only, and is left out.
    """
    for row in index["manifests"]:
        if (row.get("platform") or {}).get("os") != "linux":
            continue
        manifest = registry.manifest(row["digest"])
        if manifest is None or manifest.kind not in MANIFESTS:
            raise RegistryError(404, f"{registry.host} lacks a part of the image: {row['digest']}")
        yield _Image(manifest, registry.blob(json.loads(manifest.raw)["config"]["digest"]), row)


def _appended(reference: Reference, tag: str, top: tuple[Manifest, list[_Image]], layer: Layer) -> Appended:
    base, images = top
    pairs = [with_layer(image.manifest, image.config, layer) for image in images]
    blobs = (layer.packed, *(config for _, config in pairs))
    if base.kind in MANIFESTS:
        return Appended(reference, tag, pairs[0][0], (), blobs)
    inner = tuple(manifest for manifest, _ in pairs)
    rows = [
        {**(image.row or {}), "digest": manifest.digest, "size": len(manifest.raw)}
        for image, manifest in zip(images, inner, strict=True)
    ]
    index = {**json.loads(base.raw), "manifests": rows}
    return Appended(reference, tag, Manifest(_json(index), base.kind), inner, blobs)


def with_layer(manifest: Manifest, config: bytes, layer: Layer) -> tuple[Manifest, bytes]:
    """Return manifest and config of the image with one more layer.

    A history, where there is one, has a line for each layer.
    """
    settings, named = json.loads(config), json.loads(manifest.raw)
    settings["rootfs"]["diff_ids"].append(layer.unpacked)
    if settings.get("history"):
        settings["history"].append({"created_by": "podwright: the code of a run"})
    extended = _json(settings)
    named["config"] |= {"digest": digest_of(extended), "size": len(extended)}
    row = {"mediaType": LAYERS[manifest.kind], "digest": digest_of(layer.packed), "size": len(layer.packed)}
    named["layers"].append(row)
    return Manifest(_json(named), manifest.kind), extended


def _json(row: Any) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()
