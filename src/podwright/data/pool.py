"""The samples that a selection is made from: files that belong together, their group, and what their labels hold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from podwright.data import schema
from podwright.data.conditions import Condition
from podwright.data.dataset import Dataset, source_of
from podwright.data.paths import BelowRoot, path_bytes
from podwright.data.samples import role_case, sample_key

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class SampleFile(BelowRoot):
    """One file of a sample."""

    role: str
    size: int
    sha256: str | None


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
    incomplete: int = 0
    """How many lack a file without which there is no sample."""

    def part(self, places: Array) -> Pool:
        """Return a pool of the samples at these places."""
        return replace(self, samples=tuple(self.samples[int(place)] for place in places), pixels=self.pixels[places])


@dataclass
class _Growing:
    group: str
    label: int | None = None
    files: dict[str, SampleFile] = field(default_factory=dict)


def read_pool(dataset: Dataset, condition: Condition, by: str | None) -> Pool:
    """Return the samples of which a file fits the condition; `by` is the column of their groups."""
    layout = dataset.layout
    group = f"coalesce(f.{schema.quoted(by)}::VARCHAR, '')" if by else "''"
    query = f"""
        WITH member AS (SELECT {sample_key(layout)} AS key, {role_case(layout)} AS role, f.* FROM file f),
             chosen AS (SELECT DISTINCT {sample_key(layout)} AS key FROM {source_of(condition)})
        SELECT f.key, f.role, {group}, f.id, d.raw, f.raw, d.path, f.name, f.size, f.sha256
        FROM member f JOIN chosen USING (key) JOIN directory d ON d.id = f.dir
        WHERE f.role IS NOT NULL ORDER BY f.key, f.id"""
    growing: dict[str, _Growing] = {}
    rows = dataset.connection.execute(query, list(condition.values)).fetchall()
    for key, role, of_group, number, folder_raw, name_raw, folder, name, size, sha256 in rows:
        sample = growing.setdefault(key, _Growing(of_group))
        raw = path_bytes(folder_raw, name_raw, folder, name)
        sample.files.setdefault(role, SampleFile(folder + name, raw, role, size, sha256))
        if role == layout.label_role:
            sample.label = number
    whole = {key: sample for key, sample in growing.items() if sample.files.keys() >= set(layout.needs)}
    order = list(dict.fromkeys(role.name for role in layout.roles))
    samples = []
    for key, sample in whole.items():
        files = tuple(sample.files[role] for role in order if role in sample.files)
        samples.append(DataSample(key, sample.group, files))
    labels = [sample.label for sample in whole.values()]
    return Pool(tuple(samples), _pixels(dataset, labels), tuple(dataset.classes), len(growing) - len(whole))


def _pixels(dataset: Dataset, labels: list[int | None]) -> Array:
    """Return the class counts of label files, in their order; zeros for one that is broken or not counted."""
    pixels = np.zeros((len(labels), len(dataset.classes)))
    if not dataset.classes:
        return pixels
    columns = ", ".join(schema.class_column(place) for place in range(len(dataset.classes)))
    table = dataset.connection.execute(f"SELECT file, {columns} FROM label WHERE why IS NULL").fetchnumpy()
    rows = {int(number): row for row, number in enumerate(table["file"])}
    counted = np.stack(
        [np.asarray(table[schema.class_column(at)], dtype=float) for at in range(pixels.shape[1])], axis=1
    )
    for place, label in enumerate(labels):
        row = rows.get(label) if label is not None else None
        if row is not None:
            pixels[place] = counted[row]
    return pixels
