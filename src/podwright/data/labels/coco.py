"""Reads COCO's annotations: the area of each class by image."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.data.tree.paths import shown
from podwright.data.tree.reading import RootsReader
from podwright.data.tree.roots import Roots
from podwright.spec.problems import refuse


@dataclass(frozen=True, slots=True)
class Annotations:
    """What files of COCO say: the classes, and the area of each class by the root and the name of an image's file."""

    classes: list[LabelClass]
    areas: dict[tuple[bytes, str], dict[str, int]]
    roots: Roots


def read_annotations(paths: Sequence[bytes], files: RootsReader) -> Annotations:
    """Read files of COCO, by their paths in the dataset; classes are in the order of their numbers, root by root."""
    names: dict[bytes, dict[int, str]] = {root: {} for _, root in files.roots}
    areas: dict[tuple[bytes, str], dict[str, int]] = {}
    for path in paths:
        root, _ = files.roots.place(path)
        document = _document(path, files)
        try:
            for name, of_image in _areas(document, names[root]).items():
                areas.setdefault((root, name), {}).update(of_image)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise refuse(f"is no file of COCO: {error!r}", file=shown(files.roots.whole(path))) from None
    known = chain.from_iterable(dict(sorted(of_root.items())).values() for of_root in names.values())
    return Annotations([LabelClass(name) for name in dict.fromkeys(known)], areas, files.roots)


def _areas(document: dict[str, Any], names: dict[int, str]) -> dict[str, dict[str, int]]:
    names.update({int(row["id"]): str(row["name"]) for row in document.get("categories", ())})
    images = {row["id"]: str(row["file_name"]) for row in document.get("images", ())}
    areas: dict[str, dict[str, int]] = {name: {} for name in images.values()}
    for row in document.get("annotations", ()):
        of_image = areas[images[row["image_id"]]]
        name = names[row["category_id"]]
        of_image[name] = of_image.get(name, 0) + _area(row)
    return areas


def _document(path: bytes, files: RootsReader) -> dict[str, Any]:
    whole = shown(files.roots.whole(path))
    try:
        with files.opened(path) as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise refuse(f"cannot be read: {error}", file=whole) from None
    if not isinstance(document, dict):
        raise refuse("is no file of COCO: it should hold a JSON object", file=whole)
    return document


def _area(row: dict[str, Any]) -> int:
    """Return the pixels of an object; where nobody has measured them, those of its box."""
    if row.get("area"):
        return round(float(row["area"]))
    _, _, width, height = row.get("bbox") or (0, 0, 0, 0)
    return round(float(width * height))


def count_annotated(files: Sequence[LabelFile], annotations: Annotations) -> Iterator[Counted]:
    """Yield the areas of each class in images that the annotations name."""
    for file in files:
        root, below = annotations.roots.below(file.path)
        areas = annotations.areas.get((root, shown(below.rpartition(b"/")[2])))
        if areas is not None:
            yield Counted(file.id, [areas.get(label.name, 0) for label in annotations.classes])
