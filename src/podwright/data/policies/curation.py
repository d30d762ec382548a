"""Curation: which images of a drive are worth their room. Near-duplicates go, unless their label holds a rare class.

Two images are near-duplicates where their perceptual hashes differ in few of 64 bits (dHash: whether each of 8 x 9 grey
cells is brighter than the one to its left). An image is held against those that were kept of the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from podwright.data.catalog import schema
from podwright.data.catalog.dataset import Dataset, Match
from podwright.data.labels.counting import BROKEN, why_broken
from podwright.data.selecting.samples import is_role, sample_key

KEEP, WHY, HASH = "keep", "why", "phash"
"""The tags that curation gives."""
NEAR_BITS = 6
RARE_SHARE = 0.01
"""A class is rare that no more than this share of all labels holds."""
_CELLS = (9, 8)
_NOISE = 2


def perceptual_hash(path: bytes) -> int:
    """Return 64 bits that hardly change where an image hardly does."""
    with Image.open(path) as image:
        # JPEG decodes to a fraction of its size at once; other formats ignore it.
        image.draft("L", (64, 64))
        grey = np.asarray(image.convert("L").resize(_CELLS, Image.Resampling.BOX), dtype=np.int16)
    # By more than noise is: in the sky all cells are alike.
    brighter = (grey[:, 1:] > grey[:, :-1] + _NOISE).ravel()
    return int.from_bytes(np.packbits(brighter).tobytes(), "big")


@dataclass(frozen=True, slots=True)
class CurationVerdict:
    """Whether an image is kept, and why."""

    keep: bool
    why: str
    bits: int | None = None

    def tags(self) -> dict[str, str]:
        """Return the verdict as tags."""
        tags = {KEEP: "yes" if self.keep else "no", WHY: self.why}
        if self.bits is not None:
            tags[HASH] = f"{self.bits:016x}"
        return tags


@dataclass
class Curator:
    """Judges images in their order; `kept` are the hashes of those kept before, by folder."""

    rare: dict[bytes, str]
    """Images whose label holds a rare class, and which."""
    kept: dict[bytes, list[tuple[int, str]]] = field(default_factory=dict)

    def judge(self, path: bytes, shown: str, bits: int) -> CurationVerdict:
        """Return whether an image adds something to what was kept."""
        hashes = self.kept.setdefault(path[: path.rfind(b"/") + 1], [])
        nearest = min(hashes, key=lambda other: (other[0] ^ bits).bit_count(), default=None)
        near = nearest is not None and (nearest[0] ^ bits).bit_count() <= NEAR_BITS
        if near and path not in self.rare:
            assert nearest is not None
            return CurationVerdict(False, f"near {nearest[1]}", bits)
        hashes.append((bits, shown.rpartition("/")[2]))
        if path in self.rare:
            return CurationVerdict(True, f"rare {self.rare[path]}", bits)
        return CurationVerdict(True, "new", bits)


def curate(dataset: Dataset, files: Sequence[Match]) -> Iterator[tuple[Match, CurationVerdict]]:
    """Yield what is to become of each file; one that is no image is kept, with the reason."""
    curator = Curator(rare_images(dataset), _kept_before(dataset))

    def hashed(match: Match) -> int | str:
        try:
            return perceptual_hash(dataset.roots.whole(match.path_bytes))
        except BROKEN as error:
            return why_broken(error)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for match, bits in zip(files, pool.map(hashed, files), strict=True):
            if isinstance(bits, str):
                yield match, CurationVerdict(True, bits)
            else:
                yield match, curator.judge(match.path_bytes, match.path, bits)


def rare_images(dataset: Dataset) -> dict[bytes, str]:
    """Return the images of samples whose label holds a rare class, with the rarest of these."""
    layout = dataset.layout
    if not dataset.classes or not layout.label_role:
        return {}
    columns = [schema.class_column(index) for index in range(len(dataset.classes))]
    counts = ", ".join(f"count_if({column} > 0)" for column in columns)
    labels, *holding = dataset.connection.execute(f"SELECT count(*), {counts} FROM label").fetchone() or (0,)
    order = sorted(range(len(columns)), key=lambda index: -holding[index])
    rare: dict[bytes, str] = {}
    for index in order:
        if not 0 < holding[index] <= max(1, labels * RARE_SHARE):
            continue
        # The rarest last: it is the one that is named.
        for path in _images_with(dataset, columns[index]):
            rare[path] = dataset.classes[index]
    return rare


def _images_with(dataset: Dataset, column: str) -> Iterator[bytes]:
    layout = dataset.layout
    first = layout.roles[0].name
    query = f"""WITH holding AS (SELECT DISTINCT {sample_key(layout)} AS key FROM file f
            JOIN label l ON l.file = f.id WHERE l.{column} > 0)
        SELECT {schema.PATH_BYTES}
        FROM file f JOIN directory d ON d.id = f.dir JOIN holding h ON h.key = {sample_key(layout)}
        WHERE {is_role(layout, first)}"""
    for (path,) in dataset.connection.execute(query).fetchall():
        yield bytes(path)


def _kept_before(dataset: Dataset) -> dict[bytes, list[tuple[int, str]]]:
    """Return the hashes of images that were kept by an earlier batch or run."""
    query = f"""SELECT coalesce(d.raw, encode(d.path)), f.name, h.value FROM tag h
        JOIN tag k ON k.file = h.file AND k.name = '{KEEP}' AND k.value = 'yes'
        JOIN file f ON f.id = h.file JOIN directory d ON d.id = f.dir WHERE h.name = '{HASH}' ORDER BY f.id"""
    hashes: dict[bytes, list[tuple[int, str]]] = {}
    for folder, name, value in dataset.connection.execute(query).fetchall():
        hashes.setdefault(bytes(folder), []).append((int(value, 16), name))
    return hashes
