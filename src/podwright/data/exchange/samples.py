"""The samples of a selection as exports see them: files by role, names of one word, and what their labels hold."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from podwright.data.labels.classes import classes_of
from podwright.data.labels.images import LabelClass
from podwright.data.labels.objects import READERS, ImageObject, ObjectReader
from podwright.data.selecting.pool import DataSample, SampleFile
from podwright.data.selecting.selections import Selection
from podwright.data.tree.known_layouts import layout_of
from podwright.data.tree.layouts import Layout
from podwright.data.tree.roots import Roots
from podwright.spec.problems import Refusal, refuse

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ExportSample:
    """One sample: its number, split, and files; `stem` is its image's path as one word without an ending."""

    number: int
    split: str
    sample: DataSample
    roots: Roots

    def path(self, file: SampleFile) -> str:
        """Return where a file lies."""
        return os.fsdecode(self.roots.whole(file.path_bytes))

    @property
    def stem(self) -> str:
        """Return a name that no other sample of the dataset has."""
        return self.sample.image.path.rpartition(".")[0].replace("/", "__")

    @property
    def name(self) -> str:
        """Return the name of its image, as one word."""
        return self.sample.image.path.replace("/", "__")

    def role(self, name: str) -> SampleFile | None:
        """Return the file of a role, where the sample has it."""
        return next((file for file in self.sample.files if file.role == name), None)


class LabelledSelection:
    """A selection with what its labels hold, read as it is asked for."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.layout: Layout = layout_of(selection.dataset, selection.layout)

    def samples(self) -> Iterator[ExportSample]:
        """Yield every sample, split by split."""
        for number, (split, sample) in enumerate(self.selection.rows()):
            yield ExportSample(number, split, sample, self.selection.roots)

    @property
    def has_masks(self) -> bool:
        """Return whether its labels are images."""
        return self.layout.labels == "colours"

    @cached_property
    def reader(self) -> ObjectReader:
        """Return what reads its objects; refuse labels that are none."""
        read = READERS.get(self.layout.labels or "")
        if read is None:
            what = "masks" if self.has_masks else "no objects"
            raise self.unfit(f"the labels of {self.selection.dataset} are {what}")
        return read(self.selection.roots)

    @cached_property
    def classes(self) -> list[LabelClass]:
        """Return the classes, in the order of the dataset."""
        if self.has_masks:
            return classes_of(self.layout, Path(os.fsdecode(self.selection.root)))
        return self.reader.classes

    def unfit(self, why: str) -> Refusal:
        """Return the refusal of a format that cannot hold what the labels are."""
        hint = "csv, parquet, webdataset and croissant take any selection; coco takes masks and objects, yolo objects"
        return refuse(why, hint=hint, field="--format")

    def objects(self, sample: ExportSample) -> list[ImageObject]:
        """Return the objects of a sample's image, as its label has them or as masks of its classes."""
        if not self.has_masks:
            try:
                return self.reader.objects(sample.sample.image.path_bytes)
            except ValueError as error:
                raise refuse(str(error), file=sample.path(sample.sample.image)) from None
        label = sample.role(self.layout.label_role)
        return masks_of(sample.path(label), self.classes) if label else []


def masks_of(path: str, classes: Sequence[LabelClass]) -> list[ImageObject]:
    """Return one object for each class that is in a label image: all of its pixels, which may be several things."""
    with Image.open(path) as image:
        red, green, blue = np.moveaxis(np.asarray(image.convert("RGB"), dtype=np.uint32), -1, 0)
    colours = red << 16 | green << 8 | blue
    found = []
    for label in classes:
        mask = np.isin(colours, label.colours)
        area = int(mask.sum())
        if area:
            found.append(ImageObject(label.name, _box(mask), area, _runs(mask), is_crowd=True))
    return found


def _box(mask: Array) -> tuple[float, float, float, float]:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    left, top = int(columns[0]), int(rows[0])
    return left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1


def _runs(mask: Array) -> dict[str, Any]:
    """Return a mask as COCO writes it: lengths of runs, column by column, the first of pixels that are not in it."""
    flat = mask.ravel(order="F")
    ends = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    runs = np.diff(np.concatenate(([0], ends, [len(flat)]))).tolist()
    return {"counts": [0, *runs] if flat[0] else runs, "size": list(mask.shape)}
