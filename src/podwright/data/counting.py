"""Reads the labels of a dataset: label images, COCO's annotations, or the folders that images lie in."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from PIL import Image

from podwright.data.classes import LabelClass
from podwright.data.pixels import ColourTable
from podwright.spec.problems import refuse

BROKEN = (OSError, SyntaxError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning)
"""What Pillow raises for files that are no image, or not all of one."""
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class LabelFile:
    """A file that class counts belong to; `label` is the folder that tells the class, where one does."""

    id: int
    path: bytes
    shown: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """The counts of one file: a value for each class, and what means no class; or why there are none."""

    file: int
    counts: Sequence[int] | None
    unknown: int = 0
    why: str = ""


def count_images(files: Sequence[LabelFile], classes: Sequence[LabelClass], threads: int) -> Iterator[Counted]:
    """Yield the pixels of each class in label images, in their order; decoding takes all cores."""
    table = ColourTable(classes)

    def count(file: LabelFile) -> Counted:
        with Image.open(file.path) as image:
            counts = table.count(image).tolist()
        return Counted(file.id, counts[:-1], counts[-1])

    yield from _on_threads(count, files, threads)


def count_folders(files: Sequence[LabelFile], classes: Sequence[LabelClass], threads: int) -> Iterator[Counted]:
    """Yield the pixels of images whose folder tells the class of them all; only headers are read."""
    places = {label.name: place for place, label in enumerate(classes)}

    def count(file: LabelFile) -> Counted:
        with Image.open(file.path) as image:
            pixels = image.width * image.height
        counts = [0] * len(classes)
        counts[places[file.label]] = pixels
        return Counted(file.id, counts)

    yield from _on_threads(count, files, threads)


def _on_threads(count: Callable[[LabelFile], Counted], files: Iterable[LabelFile], threads: int) -> Iterator[Counted]:
    """Count on threads, since Pillow and NumPy let go of Python's lock; a file that is broken says why."""

    def safely(file: LabelFile) -> Counted:
        try:
            return count(file)
        except BROKEN as error:
            return Counted(file.id, None, why=why_broken(error))

    waiting = iter(files)
    with ThreadPoolExecutor(threads) as pool:
        # In portions: a pool takes all that it is given at once, and there may be millions.
        while portion := list(islice(waiting, _AT_ONCE)):
            yield from pool.map(safely, portion)


def why_broken(error: BaseException) -> str:
    """Return in words why a file is no image, or cannot be read."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    text = str(error).splitlines() or [type(error).__name__]
    if "cannot identify image file" in text[0]:
        return "is no image"
    return text[0]


@dataclass(frozen=True, slots=True)
class Annotations:
    """What files of COCO say: the classes, and the area of each class by the name of an image's file."""

    classes: list[LabelClass]
    areas: dict[str, dict[str, int]]


def read_annotations(paths: Sequence[bytes]) -> Annotations:
    """Read files of COCO; the classes are in the order of their numbers."""
    names: dict[int, str] = {}
    areas: dict[str, dict[str, int]] = {}
    for path in paths:
        document = _document(path)
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


def _document(path: bytes) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - paths are bytes
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
