"""Reads datasets of other formats: a scan with the format's layout, the classes of its labels, and objects as tags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.data.catalog.dataset import Match, open_dataset
from podwright.data.catalog.scan import Scanned, scan
from podwright.data.catalog.schema import PATH_BYTES
from podwright.data.catalog.store import Store
from podwright.data.labels.counting import BROKEN
from podwright.data.labels.objects import READERS
from podwright.data.labels.recount import count_labels
from podwright.data.labels.statistics import Statistics
from podwright.data.policies.tags import put_tags
from podwright.data.progress import Progress, unheard
from podwright.data.query.conditions import EVERYTHING
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse

FORMATS: Mapping[str, str] = {
    "coco": "outlines and boxes as their areas say",
    "yolo": "the areas of 2D boxes",
    "cityscapes": "masks",
    "kitti": "the areas of 2D boxes",
}
"""What can be imported, and what its classes count as pixels."""


@dataclass(frozen=True)
class Imported:
    """What a scan found, and what its labels hold."""

    scanned: Scanned
    statistics: Statistics
    pixels_of: str
    """What the columns of classes count as pixels."""
    objects: int | None
    """How many objects its labels have; None where they are masks."""

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data import`."""
        counts = {"images": self.statistics.images, "broken": self.statistics.broken, "objects": self.objects}
        return {**self.scanned.as_json(), **counts, "pixels_of": self.pixels_of}


def import_tree(store: Store, root: Path, format_name: str, name: str, progress: Progress = unheard) -> Imported:
    """Scan a folder of a format under a name, and count what its labels hold; files stay where they are."""
    if format_name not in FORMATS:
        message = f'"{format_name}" is no format that can be imported'
        raise refuse(message, hint=one_of(format_name, "format", FORMATS), field="--format")
    scanned = scan(store, root, name, format_name, progress)
    statistics = count_labels(store, name, progress)
    if not statistics.images and not statistics.broken:
        hint = f"`podwright data ls {name}` shows what its paths tell; a layout of your own: docs/data.md"
        raise refuse(f"no label of {format_name} is below it", hint=hint, file=str(root), exit_code=1)
    return Imported(scanned, statistics, FORMATS[format_name], _tag_objects(store, name))


def _tag_objects(store: Store, name: str) -> int | None:
    """Tag images with how many objects of each class they have, as `Car.objects`; return how many there are."""
    tags: dict[bytes, dict[str, str | None]] = {}
    total = 0
    with open_dataset(store, name) as opened:
        read = READERS.get(opened.layout.labels or "")
        if read is None:
            return None
        reader, layout = read(opened.roots), opened.layout
        # What an earlier import told goes, where the labels tell it no more.
        for path, tag in opened.connection.execute(_EARLIER).fetchall():
            tags.setdefault(bytes(path), {})[tag] = None
        roles = [role.where for role in layout.roles if role.name == layout.label_role]
        images = [match.path_bytes for match in opened.find(EVERYTHING) if _fits_any(match, roles)]
    for image in images:
        try:
            counts = Counter(found.name for found in reader.objects(image))
        except BROKEN:  # a broken label is named by its statistics
            continue
        total += counts.total()
        for label, count in counts.items():
            tags.setdefault(image, {})[f"{label}{_SUFFIX}"] = str(count)
    put_tags(store, name, tags)
    return total


def _fits_any(match: Match, roles: Sequence[Mapping[str, str]]) -> bool:
    return any(where.items() <= match.values.items() for where in roles)


_SUFFIX = ".objects"
_EARLIER = f"""SELECT {PATH_BYTES}, t.name FROM tag t JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.dir
    WHERE ends_with(t.name, '{_SUFFIX}')"""
