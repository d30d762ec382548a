"""Reads COCO's annotations: the area of each class by image."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any

from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.spec.problems import refuse


@dataclass(frozen=True, slots=True)
class Annotations:
    """What files of COCO say: the classes, and the area of each class by the name of an image's file."""

    classes: list[LabelClass]
    areas: dict[str, dict[str, int]]


def open_path(path: bytes) -> IO[bytes]:
    """Open a file of this machine."""
    return open(path, "rb")  # noqa: PTH123 - paths are bytes; the caller closes it


OpenPath = Callable[[bytes], AbstractContextManager[IO[bytes]]]


def read_annotations(paths: Sequence[bytes], opened: OpenPath = open_path) -> Annotations:
    """Read files of COCO; the classes are in the order of their numbers."""
    names: dict[int, str] = {}
    areas: dict[str, dict[str, int]] = {}
    for path in paths:
        document = _document(path, opened)
        try:
            _add_areas(document, names, areas)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise refuse(f"is no file of COCO: {error!r}", file=os.fsdecode(path)) from None
    return Annotations([LabelClass(names[number]) for number in sorted(names)], areas)


def _add_areas(document: dict[str, Any], names: dict[int, str], areas: dict[str, dict[str, int]]) -> None:
    names.update({int(row["id"]): str(row["name"]) for row in document.get("categories", ())})
    images = {row["id"]: str(row["file_name"]) for row in document.get("images", ())}
    for name in images.values():
        areas.setdefault(name, {})
    for row in document.get("annotations", ()):
        of_image = areas[images[row["image_id"]]]
        name = names[row["category_id"]]
        of_image[name] = of_image.get(name, 0) + _area(row)


def _document(path: bytes, opened: OpenPath) -> dict[str, Any]:
    try:
        with opened(path) as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise refuse(f"cannot be read: {error}", file=os.fsdecode(path)) from None
    if not isinstance(document, dict):
        raise refuse("is no file of COCO: it should hold a JSON object", file=os.fsdecode(path))
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
        name = file.shown.rpartition("/")[2]
        areas = annotations.areas.get(name)
        if areas is not None:
            yield Counted(file.id, [areas.get(label.name, 0) for label in annotations.classes])
