"""Data that pilots bring to the nodes of a run on Kubernetes: where it is kept, how its manifests travel. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.quantities import size_text
from podwright.engines.staged import manifests

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import Pod

MAX_MANIFEST_PIECES = 16
"""Of all manifests of a run: some 200,000 files."""
CACHE_BYTES = 256 << 30
"""The least that the cache of a Kubernetes pod may grow to, where the pod file says nothing."""
FORGETS = (
    "data is brought again for every run on Kubernetes, and goes with its nodes; `cache: {claim: NAME}` in the pod "
    "file names a volume claim that keeps it"
)


@dataclass(frozen=True)
class CacheVolume:
    """What holds the data of a node: a claim, or a folder that goes with the Kubernetes pod."""

    claim: str | None
    most_bytes: int | None
    """That one user's data may take; None: what there is room for."""
    limit_bytes: int

    def source(self) -> dict[str, object]:
        """Return it as the volumes of a Kubernetes pod have it."""
        if self.claim:
            return {"persistentVolumeClaim": {"claimName": self.claim}}
        return {"emptyDir": {"sizeLimit": size_text(self.limit_bytes)}}


@dataclass(frozen=True)
class RunData:
    """The data of a run: its cache, and the ConfigMaps of each manifest, piece by piece, by the manifest's file."""

    cache: CacheVolume
    maps: Mapping[str, Sequence[str]]

    def pieces(self) -> Iterator[tuple[str, str]]:
        """Yield each ConfigMap with the name of the piece in it; enter.sh puts them together."""
        for file, maps in self.maps.items():
            for index, name in enumerate(maps):
                yield name, piece_key(file, index)


def run_data(request: Request, pod: Pod) -> RunData | None:
    """Return the data of a run; None where nothing is staged."""
    if not request.staged:
        return None
    need = sum(given.size_bytes for given in request.staged.values())
    most = pod.cache.size_bytes
    cache = CacheVolume(pod.cache.claim, most, max(CACHE_BYTES, 2 * need, 2 * (most or 0)))
    return RunData(cache, {file: _maps(data) for file, data in manifests(request.staged).items()})


def piece_key(file: str, index: int) -> str:
    """Return the name of a piece of a manifest; sorted they are the whole."""
    return f"{file}.{index:02}"


def _maps(data: bytes) -> list[str]:
    """Return the names of the ConfigMaps of a manifest: equal manifests are stored once, whoever brings them."""
    digest = sha256(data).hexdigest()[:12]
    return [f"podwright-data-{digest}-{index}" for index in range(len(list(_pieces(data))))]


def _pieces(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), names.PIECE_BYTES):
        yield data[at : at + names.PIECE_BYTES]


def manifest_maps(site_data: Mapping[str, Sequence[str]], job: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the ConfigMaps of the manifests in a run's job folder, each with the piece that it holds."""
    for file, maps in site_data.items():
        for index, (name, piece) in enumerate(zip(maps, _pieces((job / file).read_bytes()), strict=True)):
            yield name, {piece_key(file, index): piece}
