"""What is known of the looks of a dataset's images: hashes, each computed once, or the vectors that somebody gave.

similar/NAME/hashes.parquet      path, size, mtime_ns, bits
similar/NAME/vectors.parquet     path, vector: what `data vectors` was given
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from podwright.data.catalog.store import Store
from podwright.data.labels.counting import BROKEN
from podwright.data.policies.curation import NEAR_BITS, perceptual_hash
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.similar.groups import MOST_DISTANCE, Array, hash_groups, vector_groups
from podwright.data.tree.paths import BelowRoot
from podwright.data.tree.roots import Roots
from podwright.files.whole import make_private, write_whole
from podwright.spec.problems import refuse

NEAR_COSINE = 0.05
"""How far from 1 the cosine of near vectors is at most, where nobody says."""
_AT_ONCE = 256


@dataclass(frozen=True)
class Vectors:
    """What was taken of a file of vectors."""

    dataset: str
    vectors: int
    dimensions: int

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data vectors`."""
        return asdict(self)


@dataclass(frozen=True)
class Likeness:
    """The group of each image, in the order in which they were given; -1 for one of which nothing is known."""

    groups: tuple[int, ...]
    by: str
    """`hash` or `vector`."""


class Looks:
    """The looks of the images of one dataset."""

    def __init__(self, store: Store, dataset: str, roots: Roots) -> None:
        self._folder, self._roots, self._dataset = store.home / "similar" / dataset, roots, dataset
        if roots.has_address:
            hint = "podwright data stage SELECTION --to DIR, and scan it there"
            raise refuse(f"{dataset} lies behind an address, and its images are looked at", hint=hint)

    @property
    def has_vectors(self) -> bool:
        """Return whether somebody gave vectors, which are then used in place of hashes."""
        return (self._folder / "vectors.parquet").exists()

    def keep_vectors(self, file: Path) -> Vectors:
        """Keep a file of vectors; refuse one that is none, with what is wrong."""
        vectors = _read_vectors(file)
        make_private(self._folder)
        write_whole(self._folder / "vectors.parquet", file.read_bytes())
        return Vectors(self._dataset, len(vectors), len(next(iter(vectors.values()))))

    def likeness(
        self, images: Sequence[BelowRoot], distance: float | None = None, progress: Progress = unheard
    ) -> Likeness:
        """Return which images are near-duplicates; `distance` is in bits, of vectors how far the cosine is from 1."""
        if self.has_vectors:
            vectors = _read_vectors(self._folder / "vectors.parquet")
            known = [number for number, image in enumerate(images) if image.path in vectors]
            allowed = NEAR_COSINE if distance is None else distance
            if not 0 <= allowed < 1:
                raise refuse("of vectors must be from 0 up to 1", hint="such as 0.05", field="--distance")
            rows = np.array([vectors[images[number].path] for number in known], dtype=np.float32)
            found = vector_groups(rows, allowed) if known else np.zeros(0, dtype=int)
            return _spread(len(images), known, found, "vector")
        bits_apart = NEAR_BITS if distance is None else distance
        if bits_apart != int(bits_apart) or not 0 <= bits_apart <= MOST_DISTANCE:
            hint = f"of 64 bits; {NEAR_BITS} where nobody says"
            raise refuse(f"must be a whole number from 0 to {MOST_DISTANCE}", hint=hint, field="--distance")
        hashes = self._hashes(images, progress)
        known = [number for number, bits in enumerate(hashes) if bits is not None]
        found = hash_groups(np.array([hashes[number] for number in known], dtype=np.uint64), int(bits_apart))
        return _spread(len(images), known, found, "hash")

    def _hashes(self, images: Sequence[BelowRoot], progress: Progress) -> list[int | None]:
        """Return the hash of each image; None of what is no image. Those of files that nobody touched are kept."""
        kept = self._kept()

        def look(image: BelowRoot) -> tuple[bytes, int, int, int | None]:
            path = self._roots.whole(image.path_bytes)
            try:
                facts = os.stat(path)  # noqa: PTH116 - paths are bytes
                key = (image.path_bytes, facts.st_size, facts.st_mtime_ns)
                return (*key, kept[key] if key in kept else perceptual_hash(path))
            except BROKEN:
                return image.path_bytes, -1, -1, None

        rows: list[tuple[bytes, int, int, int | None]] = []
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for start in range(0, len(images), _AT_ONCE):
                rows += pool.map(look, images[start : start + _AT_ONCE])
                progress(Advance("similar", len(rows), len(images)))
        fresh = {row[:3]: row[3] for row in rows if row[3] is not None}
        if not fresh.keys() <= kept.keys():
            self._keep(kept | fresh)
        return [row[3] for row in rows]

    def _kept(self) -> dict[tuple[bytes, int, int], int]:
        try:
            table = parquet.read_table(self._folder / "hashes.parquet")
        except (OSError, pa.ArrowInvalid):  # none yet, or damaged: they are computed again
            return {}
        path, size, mtime_ns, bits = (column.to_pylist() for column in table.columns)
        return dict(zip(zip(path, size, mtime_ns, strict=True), bits, strict=True))

    def _keep(self, hashes: dict[tuple[bytes, int, int], int]) -> None:
        make_private(self._folder)
        path, size, mtime_ns = zip(*hashes, strict=True)
        columns = {
            "path": pa.array(path, pa.binary()),
            "size": pa.array(size, pa.int64()),
            "mtime_ns": pa.array(mtime_ns, pa.int64()),
            "bits": pa.array(hashes.values(), pa.uint64()),
        }
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table(columns), sink)
        write_whole(self._folder / "hashes.parquet", sink.getvalue().to_pybytes())


def forget_looks(store: Store, dataset: str) -> None:
    """Forget what is known of a dataset's looks."""
    shutil.rmtree(store.home / "similar" / dataset, ignore_errors=True)


def _spread(count: int, known: Sequence[int], found: Array, by: str) -> Likeness:
    groups = [-1] * count
    for number, group in zip(known, found, strict=True):
        groups[number] = known[int(group)]
    return Likeness(tuple(groups), by)


def _read_vectors(file: Path) -> dict[str, Any]:
    """Return the vectors of a file by the paths of images below the root."""
    hint = "it needs the columns `path` (below the root) and `vector` (a list of numbers)"
    try:
        table = parquet.read_table(file, columns=["path", "vector"])
        paths, vectors = table["path"].to_pylist(), table["vector"].to_pylist()
    except (OSError, pa.ArrowException, KeyError) as error:
        raise refuse(f"is no file of vectors: {str(error).splitlines()[0]}", hint=hint, file=str(file)) from None
    lengths = {len(vector) if isinstance(vector, list) else 0 for vector in vectors}
    if len(lengths) != 1 or 0 in lengths:
        raise refuse("has no vectors, or not all of one length", hint=hint, file=str(file))
    if not np.isfinite(np.array(vectors, dtype=np.float64)).all():
        raise refuse("has a vector with a number that is not finite", hint="leave such images out", file=str(file))
    return dict(zip(paths, vectors, strict=True))
