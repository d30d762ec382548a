"""Objects in images, each a class and a box, as YOLO, KITTI and COCO write them down; boxes are in pixels."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

from podwright.data.labels.counting import on_threads
from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.data.tree.paths import shown
from podwright.data.tree.reading import RootsReader
from podwright.data.tree.roots import Roots, is_address
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


class ObjectReader(ABC):
    """Reads the objects of the images of a dataset, wherever its roots lie; `classes` are in its order."""

    def __init__(self, roots: Roots) -> None:
        self.roots, self.files = roots, RootsReader(roots)

    @property
    @abstractmethod
    def classes(self) -> list[LabelClass]:
        """Return the classes, in the order of their numbers."""

    @abstractmethod
    def objects(self, image: bytes) -> list[ImageObject]:
        """Return the objects of an image, by its path in the dataset; ValueError says what is wrong with them."""

    def _lines(self, image: bytes, folder: bytes, beside: bytes) -> Iterator[tuple[int, list[str]]]:
        """Yield the words of each line of a label; an image without a label has no objects."""
        above, _, name = image.rpartition(b"/")
        parts = [beside if part == folder else part for part in above.split(b"/")]
        with self.files.opened_if_there(b"/".join([*parts, name.rpartition(b".")[0] + b".txt"])) as file:
            if file is None:
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line.decode("utf-8", "replace").split()


class YoloReader(ObjectReader):
    """images/SPLIT/A.jpg and labels/SPLIT/A.txt: class, centre and size, as shares of the image; names in data.yaml."""

    @cached_property
    def classes(self) -> list[LabelClass]:
        """Return the classes that files of the roots name; a further root may do without."""
        names = dict.fromkeys(chain.from_iterable(self._names.values()))
        if not self._names[self.roots.first]:
            hint = "write `names: [car, person]`, in the order of the numbers in the labels"
            raise refuse("there is no data.yaml that names the classes", hint=hint, file=shown(self.roots.first))
        return [LabelClass(name) for name in names]

    @cached_property
    def _names(self) -> dict[bytes, list[str]]:
        """Return the names of classes by the root whose labels have them as numbers."""
        names: dict[bytes, list[str]] = {}
        for label, root in self.roots:
            names[root] = self._names_of(label, root) or names.get(self.roots.first, [])
        return names

    def _names_of(self, label: str, root: bytes) -> list[str]:
        candidates = ["data.yaml", "data.yml"]  # behind an address; of a folder any file of its top may be it
        if not is_address(root):
            folder = Path(os.fsdecode(root))
            candidates = [path.name for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])]
        for name in candidates:
            with self.files.opened_if_there(os.fsencode(f"{label}/{name}" if label else name)) as file:
                names = _names(file.read(), os.fsdecode(root + b"/" + name.encode())) if file else []
            if names:
                return names
        return []

    def objects(self, image: bytes) -> list[ImageObject]:
        """Return the objects of an image; its header tells how large it is."""
        rows = list(self._lines(image, b"images", b"labels"))
        if not rows:
            return []
        with self.files.opened(image) as file, Image.open(file) as picture:
            size = picture.size
        root, _ = self.roots.place(image)
        return [self._object(number, words, size, self._names[root]) for number, words in rows]

    def _object(self, line: int, words: Sequence[str], size: tuple[int, int], names: Sequence[str]) -> ImageObject:
        width, height = size
        try:
            kind, *shares = int(words[0]), *map(float, words[1:])
        except ValueError:
            raise ValueError(f"line {line} of its label has a word that is no number") from None
        if not 0 <= kind < len(names):
            raise ValueError(f"line {line} of its label has the class {kind}, and there are {len(names)}")
        if len(shares) == 4:
            centre_x, centre_y, wide, high = shares
            box = ((centre_x - wide / 2) * width, (centre_y - high / 2) * height, wide * width, high * height)
        elif len(shares) >= 6 and len(shares) % 2 == 0:  # the outline of a segmentation
            xs, ys = [share * width for share in shares[::2]], [share * height for share in shares[1::2]]
            box = (min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))
        else:
            raise ValueError(f"line {line} of its label has {len(words)} words, and should have 5")
        return ImageObject(names[kind], box, box[2] * box[3])


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
    """annotations/instances_*.json of folders: outlines, boxes and areas by the names of images' files."""

    @cached_property
    def _by_root(self) -> dict[bytes, Instances]:
        by_root = {}
        for root in self.roots.folders:
            folder = Path(os.fsdecode(root)) / "annotations"
            documents = [json.loads(path.read_bytes()) for path in sorted(folder.glob("instances_*.json"))]
            by_root[root] = Instances([document for document in documents if isinstance(document, dict)])
        return by_root

    @cached_property
    def classes(self) -> list[LabelClass]:
        """Return the classes of all files, by their numbers, root by root."""
        names = chain.from_iterable(dict(sorted(one.names.items())).values() for one in self._by_root.values())
        return [LabelClass(name) for name in dict.fromkeys(names)]

    def objects(self, image: bytes) -> list[ImageObject]:
        """Return the objects of an image, by the name of its file."""
        root, below = self.roots.place(image)
        return self._by_root[root].by_image.get(os.fsdecode(below.rpartition(b"/")[2]), [])


class Instances:
    """What the documents of one root say: names of classes by their numbers, and objects by the name of an image."""

    def __init__(self, documents: Sequence[Mapping[str, Any]]) -> None:
        self._documents = documents
        self.names: dict[int, str] = {}
        for document in documents:
            self.names |= {int(row["id"]): str(row["name"]) for row in document.get("categories", ())}

    @cached_property
    def by_image(self) -> Mapping[str, list[ImageObject]]:
        """Return the objects of each image."""
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
        return ImageObject(self.names[row["category_id"]], box, area, row.get("segmentation"), crowd)


BOXES: Mapping[str, Callable[[Roots], ObjectReader]] = {"yolo": YoloReader, "kitti": KittiReader}
"""What reads labels that are boxes alone, by the source of labels that a layout names."""
READERS: Mapping[str, Callable[[Roots], ObjectReader]] = {**BOXES, "coco": CocoReader}


def count_objects(files: Sequence[LabelFile], reader: ObjectReader, threads: int) -> Iterator[Counted]:
    """Yield the area of each class's boxes in images, as pixels; a label that is broken says why."""
    names = [label.name for label in reader.classes]

    def count(file: LabelFile) -> Counted:
        areas: Counter[str] = Counter()
        for found in reader.objects(reader.roots.inside(file.path)):
            areas[found.name] += round(found.area)
        return Counted(file.id, [areas[name] for name in names])

    yield from on_threads(count, files, threads)


def _names(text: bytes, path: str) -> list[str]:
    """Return the names of classes that a file of YOLO holds; nothing where it is no such file."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError):
        return []
    names = document.get("names") if isinstance(document, dict) else None
    if isinstance(names, dict) and all(isinstance(number, int) for number in names):
        if sorted(names) != list(range(len(names))):
            hint = "give each number from 0 on a name"
            raise refuse("the numbers of its classes have gaps", hint=hint, file=path, field="names")
        names = [names[number] for number in sorted(names)]
    return [str(name) for name in names] if isinstance(names, list) else []
