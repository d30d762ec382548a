"""The samples that a selection is made from: files that belong together, their group, and what their labels hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from podwright.data.query.conditions import Condition
from podwright.data.tree.paths import BelowRoot

if TYPE_CHECKING:
    from podwright.data.catalog.dataset import Dataset
    from podwright.data.clickhouse.published import PublishedDataset

    SampleSource = Dataset | PublishedDataset
    """A dataset that selections are made from, wherever it is at home."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class SampleFile(BelowRoot):
    """One file of a sample."""

    role: str
    size: int
    sha256: str | None
    mtime_ns: int | None = None
    """None in selections that were made before it was kept."""


@dataclass(frozen=True, slots=True)
class DataSample:
    """What a model is given at once: image and label, and what else belongs to them; the image is first."""

    key: str
    group: str
    files: tuple[SampleFile, ...]

    @property
    def image(self) -> SampleFile:
        """Return what the model sees."""
        return self.files[0]


@dataclass(frozen=True)
class Pool:
    """Samples with a row of pixels for each, a column for each class."""

    samples: tuple[DataSample, ...]
    pixels: Array
    classes: tuple[str, ...]
    total: Array
    """Pixels of each class in the whole dataset."""
    incomplete: int = 0
    """How many lack a file without which there is no sample."""

    def subset(self, indices: Array) -> Pool:
        """Return a pool of some of the samples."""
        return replace(self, samples=tuple(self.samples[int(at)] for at in indices), pixels=self.pixels[indices])


@dataclass
class _Growing:
    group: str
    label: int | None = None
    files: dict[str, SampleFile] = field(default_factory=dict)


def read_pool(dataset: SampleSource, condition: Condition, by: str | None) -> Pool:
    """Return the samples of which a file fits the condition; `by` is the column of their groups."""
    layout = dataset.layout
    growing: dict[str, _Growing] = {}
    for member in dataset.members(condition, by):
        sample = growing.setdefault(member.key, _Growing(member.group))
        file = SampleFile(member.path, member.raw, member.role, member.size, member.sha256, member.mtime_ns)
        sample.files.setdefault(member.role, file)
        if member.role == layout.label_role:
            sample.label = member.number
    complete = {key: sample for key, sample in growing.items() if sample.files.keys() >= set(layout.needs)}
    order = list(dict.fromkeys(role.name for role in layout.roles))
    samples = []
    for key, sample in complete.items():
        files = tuple(sample.files[role] for role in order if role in sample.files)
        samples.append(DataSample(key, sample.group, files))
    numbers, counted = dataset.label_pixels()
    pixels = _pixels([sample.label for sample in complete.values()], numbers, counted)
    incomplete = len(growing) - len(complete)
    return Pool(tuple(samples), pixels, tuple(dataset.classes), counted.sum(axis=0), incomplete)


def _pixels(labels: Sequence[int | None], numbers: Sequence[int], counted: Array) -> Array:
    """Return the class counts of label files, in their order; zeros for one that is broken or not counted."""
    pixels = np.zeros((len(labels), counted.shape[1]))
    rows = {int(number): row for row, number in enumerate(numbers)}
    for index, label in enumerate(labels):
        row = rows.get(label) if label is not None else None
        if row is not None:
            pixels[index] = counted[row]
    return pixels
