"""Objects in images, each a class and a box, as YOLO, KITTI and COCO write them down; boxes are in pixels."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from podwright.data.labels.counting import BROKEN, why_broken
from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.spec.problems import refuse

KITTI_CLASSES = ("Car", "Van", "Truck", "Pedestrian", "Person_sitting", "Cyclist", "Tram", "Misc")
"""As the development kit of KITTI names them; DontCare is no object."""


@dataclass(frozen=True, slots=True)
class ImageObject:
    """One object: its class, its box as left, top, width and height, its area, and its outline where there is one."""

    name: str
    box: tuple[float, float, float, float]
    area: float
    outline: Any = None
    is_crowd: bool = False


class ObjectReader:
    """Reads the objects of the images below a root; `classes` are in the order of the dataset."""

    def __init__(self, root: bytes) -> None:
        self.root = root

    @property
    def classes(self) -> list[LabelClass]:
        """Return the classes, in the order of their numbers."""
        raise NotImplementedError

    def objects(self, image: bytes) -> list[ImageObject]:
        """Return the objects of an image, by its path below the root; ValueError says what is wrong with them."""
        raise NotImplementedError

    def _lines(self, image: bytes, folder: bytes, beside: bytes) -> Iterator[tuple[int, list[str]]]:
        """Yield the words of each line of a label; an image without a label has no objects."""
        above, _, name = image.rpartition(b"/")
        parts = [beside if part == folder else part for part in above.split(b"/")]
        path = b"/".join([self.root, *parts, name.rpartition(b".")[0] + b".txt"])
        if not os.path.exists(path):  # noqa: PTH110 - paths are bytes
            return
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - paths are bytes
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.split()


class YoloReader(ObjectReader):
    """images/SPLIT/A.jpg and labels/SPLIT/A.txt: class, centre and size, as shares of the image; names in data.yaml."""

    @cached_property
    def classes(self) -> list[LabelClass]:
        """Return the classes that a file of the root names."""
        root = Path(os.fsdecode(self.root))
        for path in sorted([*root.glob("*.yaml"), *root.glob("*.yml")]):
            names = _names(path)
            if names:
                return [LabelClass(name) for name in names]
        hint = "write `names: [car, person]`, in the order of the numbers in the labels"
        raise refuse("there is no data.yaml that names the classes", hint=hint, file=str(root))

    def objects(self, image: bytes) -> list[ImageObject]:
        """Return the objects of an image; its header tells how large it is."""
        rows = list(self._lines(image, b"images", b"labels"))
        if not rows:
            return []
        with Image.open(os.fsdecode(self.root + b"/" + image)) as picture:
            width, height = picture.size
        return [self._object(number, words, width, height) for number, words in rows]

    def _object(self, line: int, words: Sequence[str], width: int, height: int) -> ImageObject:
        try:
            kind, *shares = int(words[0]), *map(float, words[1:])
        except ValueError:
            raise ValueError(f"line {line} of its label has a word that is no number") from None
        if not 0 <= kind < len(self.classes):
            raise ValueError(f"line {line} of its label has the class {kind}, and there are {len(self.classes)}")
        if len(shares) == 4:
            centre_x, centre_y, wide, high = shares
            box = ((centre_x - wide / 2) * width, (centre_y - high / 2) * height, wide * width, high * height)
        elif len(shares) >= 6 and len(shares) % 2 == 0:  # the outline of a segmentation
            xs, ys = [share * width for share in shares[::2]], [share * height for share in shares[1::2]]
            box = (min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
        else:
            raise ValueError(f"line {line} of its label has {len(words)} words, and should have 5")
        return ImageObject(self.classes[kind].name, box, box[2] * box[3])


class KittiReader(ObjectReader):
    """training/image_2/A.png and training/label_2/A.txt: class, ..., left, top, right, bottom, ... in pixels."""

    @property
    def classes(self) -> list[LabelClass]:
        """Return the classes of KITTI."""
        return [LabelClass(name) for name in KITTI_CLASSES]

    def objects(self, image: bytes) -> list[ImageObject]:
        """Return the objects of an image."""
        found = []
        for line, words in self._lines(image, b"image_2", b"label_2"):
            if len(words) < 8:
                raise ValueError(f"line {line} of its label has {len(words)} words, and should have 15")
            if words[0] == "DontCare":
                continue
            if words[0] not in KITTI_CLASSES:
                raise ValueError(f"line {line} of its label has the class {words[0]}, which KITTI has not")
            try:
                left, top, right, bottom = map(float, words[4:8])
            except ValueError:
                raise ValueError(f"line {line} of its label has a word that is no number") from None
            box = (left, top, right - left, bottom - top)
            found.append(ImageObject(words[0], box, box[2] * box[3]))
        return found


class CocoReader(ObjectReader):
    """annotations/instances_*.json: outlines, boxes and areas by the names of images' files."""

    @cached_property
    def _documents(self) -> list[dict[str, Any]]:
        folder = Path(os.fsdecode(self.root)) / "annotations"
        documents = [json.loads(path.read_bytes()) for path in sorted(folder.glob("instances_*.json"))]
        return [document for document in documents if isinstance(document, dict)]

    @cached_property
    def classes(self) -> list[LabelClass]:
        """Return the classes of all files, by their numbers."""
        return [LabelClass(name) for _, name in sorted(self._names.items())]

    @cached_property
    def _names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for document in self._documents:
            names |= {int(row["id"]): str(row["name"]) for row in document.get("categories", ())}
        return names

    @cached_property
    def _by_image(self) -> Mapping[str, list[ImageObject]]:
        by_image: dict[str, list[ImageObject]] = {}
        for document in self._documents:
            images = {row["id"]: str(row["file_name"]) for row in document.get("images", ())}
            for row in document.get("annotations", ()):
                by_image.setdefault(images[row["image_id"]], []).append(self._object(row))
        return by_image

    def _object(self, row: Mapping[str, Any]) -> ImageObject:
        left, top, width, height = row.get("bbox") or (0.0, 0.0, 0.0, 0.0)
        area = float(row.get("area") or width * height)
        box = (float(left), float(top), float(width), float(height))
        crowd = bool(row.get("iscrowd"))
        return ImageObject(self._names[row["category_id"]], box, area, row.get("segmentation"), crowd)

    def objects(self, image: bytes) -> list[ImageObject]:
        """Return the objects of an image, by the name of its file."""
        return self._by_image.get(os.fsdecode(image.rpartition(b"/")[2]), [])


BOXES: Mapping[str, Callable[[bytes], ObjectReader]] = {"yolo": YoloReader, "kitti": KittiReader}
"""What reads labels that are boxes alone, by the source of labels that a layout names."""
READERS: Mapping[str, Callable[[bytes], ObjectReader]] = {**BOXES, "coco": CocoReader}


def count_objects(files: Sequence[LabelFile], reader: ObjectReader) -> Iterator[Counted]:
    """Yield the area of each class's boxes in images, as pixels; a label that is broken says why."""
    names = [label.name for label in reader.classes]
    for file in files:
        try:
            areas: Counter[str] = Counter()
            for found in reader.objects(file.path.removeprefix(reader.root + b"/")):
                areas[found.name] += round(found.area)
        except BROKEN as error:
            yield Counted(file.id, None, why=why_broken(error))
        else:
            yield Counted(file.id, [areas[name] for name in names])


def _names(path: Path) -> list[str]:
    """Return the names of classes that a file of YOLO holds; nothing where it is no such file."""
    try:
        document = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, RecursionError):
        return []
    names = document.get("names") if isinstance(document, dict) else None
    if isinstance(names, dict) and all(isinstance(number, int) for number in names):
        if sorted(names) != list(range(len(names))):
            hint = "give each number from 0 on a name"
            raise refuse("the numbers of its classes have gaps", hint=hint, file=str(path), field="names")
        names = [names[number] for number in sorted(names)]
    return [str(name) for name in names] if isinstance(names, list) else []
