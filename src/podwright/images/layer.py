"""An image with the code of a run as one more layer: no program builds it, and nothing of the image itself is fetched.

The registry keeps the layers of the image already. What is sent is the code, and small texts that name all of them.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedIOBase
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from podwright.clients.registry import (
    INDEXES,
    MANIFESTS,
    OCI,
    Manifest,
    Reference,
    Registry,
    RegistryError,
    checked_digest,
    digest_of,
    parse,
    understood,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

LAYERS = dict(
    zip(MANIFESTS, (f"{OCI}.layer.v1.tar+gzip", "application/vnd.docker.image.rootfs.diff.tar.gzip"), strict=True)
)
"""What a layer is called, by the kind of the manifest that names it."""
LEVEL = 1
"""Of compression: what is large here is data more often than text, and the user waits for it."""
MEMORY_BYTES = 8 << 20
"""Of code whose layer is packed in memory; a larger one lies in a temporary file."""


@dataclass(frozen=True)
class Layer:
    """A layer packed as it is sent, and the digest that it has unpacked."""

    packed: BufferedIOBase = field(repr=False)
    unpacked: str


@dataclass(frozen=True)
class Appended:
    """An image under the tag that its parts give it, with what the registry lacks of it, in the order of sending."""

    base: Reference
    tag: str
    top: Manifest
    inner: tuple[Manifest, ...] = ()
    blobs: tuple[BufferedIOBase, ...] = field(default=(), repr=False)

    def __enter__(self) -> Appended:
        return self

    def __exit__(self, *_: object) -> None:
        for blob in self.blobs:
            blob.close()

    @property
    def image(self) -> str:
        """Return the name under which it is always the same image."""
        return f"{self.base.place}@{self.top.digest}"


def prepare(image: str, code: BufferedIOBase, path: str) -> Appended:
    """Return the image with this code as the file `path`; nothing is sent.

    Equal code on an equal image is found where it was put before.
    """
    reference = parse(image)
    registry = Registry(reference.host, reference.repository)
    base = registry.manifest(reference.tag)
    if base is None:
        raise RegistryError(404, f"there is no image {image}")
    unpacked = layer_digest(code, path)
    tag = tag_of(base.digest, unpacked)
    there = registry.manifest(tag)
    if there is not None:
        return Appended(reference, tag, there)
    layer = Layer(_packed(code, path), unpacked)
    with understood(registry.host):
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


def layer_digest(code: BufferedIOBase, path: str) -> str:
    """Return the digest of the layer with this code, before it is packed."""
    digest = hashlib.sha256()
    write_layer(_Hashed(digest), code, path)
    return f"sha256:{digest.hexdigest()}"


class _Hashed(BufferedIOBase):
    """A place to write to that only counts the digest."""

    def __init__(self, digest: hashlib._Hash) -> None:
        self._digest = digest

    def write(self, data: Buffer, /) -> int:
        self._digest.update(data)
        return len(memoryview(data))


def _packed(code: BufferedIOBase, path: str) -> BufferedIOBase:
    packed: BufferedIOBase = io.BytesIO()
    if code.seek(0, os.SEEK_END) > MEMORY_BYTES:
        packed = TemporaryFile()  # noqa: SIM115 - it is closed once it was sent
    with gzip.GzipFile("", "wb", LEVEL, packed, mtime=0) as out:
        write_layer(out, code, path)
    return packed


def write_layer(out: BufferedIOBase, code: BufferedIOBase, path: str) -> None:
    """Write a tar of one file that anybody may read, in folders that anybody may enter; the same bytes each time."""
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.USTAR_FORMAT) as archive:
        *folders, _ = path.strip("/").split("/")
        for count in range(1, len(folders) + 1):
            folder = tarfile.TarInfo("/".join(folders[:count]))
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        file = tarfile.TarInfo(path.strip("/"))
        file.size, file.mode = code.seek(0, os.SEEK_END), 0o444
        code.seek(0)
        archive.addfile(file, code)


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
        digest = checked_digest(registry.host, row["digest"])
        manifest = registry.manifest(digest)
        if manifest is None or manifest.kind not in MANIFESTS:
            raise RegistryError(404, f"{registry.host} lacks a part of the image: {digest}")
        yield _Image(manifest, registry.blob(json.loads(manifest.raw)["config"]["digest"]), row)


def _appended(reference: Reference, tag: str, top: tuple[Manifest, list[_Image]], layer: Layer) -> Appended:
    base, images = top
    pairs = [with_layer(image.manifest, image.config, layer) for image in images]
    blobs = (layer.packed, *(io.BytesIO(config) for _, config in pairs))
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
    size = layer.packed.seek(0, os.SEEK_END)
    named["layers"].append({"mediaType": LAYERS[manifest.kind], "digest": digest_of(layer.packed), "size": size})
    return Manifest(_json(named), manifest.kind), extended


def _json(row: Any) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()
