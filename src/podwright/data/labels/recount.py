"""Counts what the labels of a dataset hold, into a new generation; a label is read once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from podwright.data.catalog import schema
from podwright.data.catalog.dataset import Dataset, open_dataset
from podwright.data.catalog.files import put_rows
from podwright.data.catalog.store import Store
from podwright.data.labels import coco, counting
from podwright.data.labels.classes import classes_of
from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.data.labels.statistics import Statistics
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.query import bitmaps
from podwright.data.selecting.samples import is_role
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from podwright.data.labels.runs import LabelRun

_ROWS = 10_000


def count_labels(
    store: Store, name: str, progress: Progress = unheard, elsewhere: LabelRun | None = None
) -> Statistics:
    """Count the labels that are not counted yet, here or elsewhere, and return what all of them hold."""
    with open_dataset(store, name) as dataset:
        if dataset.layout.labels is None:
            message = f"{name} has the layout {dataset.layout.name}, in which no labels are known"
            raise refuse(message, hint="layouts with labels are a2d2, coco and images: scan it with --layout")
        if elsewhere is not None and dataset.layout.labels != "colours":
            message = f"{name} has no label images, whose pixels nodes could count"
            raise refuse(message, hint=f"podwright data stats {name}", field="--on")
    with store.writing(name) as draft:
        # Within the lock: what is counted must be what is copied.
        with open_dataset(store, name) as dataset:
            work = _Work(dataset, elsewhere)
        if work.files:
            with store.amending(name, draft) as connection:
                work.write(connection, progress)
    with open_dataset(store, name) as dataset:
        return replace(dataset.statistics(), counted=len(work.files))


class _Work:
    """What is to be counted in a dataset, and how."""

    def __init__(self, dataset: Dataset, elsewhere: LabelRun | None) -> None:
        self.layout, self.root, self._elsewhere = dataset.layout, dataset.root_bytes, elsewhere
        self.annotations = self._annotations(dataset)
        self.classes = self._classes(dataset)
        names = [label.name for label in self.classes]
        # Counts of other classes than these, or by annotations that may have changed, are made again.
        self.again = names != dataset.classes or dataset.layout.labels == "coco"
        self.files = self._files(dataset)

    def _annotations(self, dataset: Dataset) -> coco.Annotations | None:
        if dataset.layout.labels != "coco":
            return None
        condition = dataset.condition("ext=json and folder~annotations and name~instances_")
        paths = [dataset.root_bytes + b"/" + match.path_bytes for match in dataset.find(condition)]
        return coco.read_annotations(paths)

    def _classes(self, dataset: Dataset) -> list[LabelClass]:
        if self.annotations is not None:
            return self.annotations.classes
        if dataset.layout.labels == "folders":
            query = "SELECT DISTINCT label FROM file WHERE label IS NOT NULL ORDER BY label"
            return [LabelClass(name) for (name,) in dataset.connection.execute(query).fetchall()]
        return classes_of(dataset.layout, Path(os.fsdecode(dataset.root_bytes)))

    def _files(self, dataset: Dataset) -> list[LabelFile]:
        done = "" if self.again else "AND f.id NOT IN (SELECT file FROM label)"
        label = "f.label" if dataset.layout.labels == "folders" else "''"
        query = f"""SELECT f.id, {schema.PATH_BYTES}, d.path || f.name, {label}
            FROM file f JOIN directory d ON d.id = f.dir
            WHERE ({is_role(dataset.layout, dataset.layout.label_role)}) AND {label} IS NOT NULL {done} ORDER BY f.id"""
        files = []
        for number, path, text, of_folder in dataset.connection.execute(query).fetchall():
            files.append(LabelFile(number, self.root + b"/" + path, text, of_folder))
        return files

    def _counts(self) -> Iterator[Counted]:
        if self.annotations is not None:
            return coco.count_annotated(self.files, self.annotations)
        if self._elsewhere is not None:
            return self._elsewhere.count(self.root, self.files, self.classes)
        threads = len(os.sched_getaffinity(0))
        if self.layout.labels == "folders":
            return counting.count_folders(self.files, self.classes, threads)
        return counting.count_images(self.files, self.classes, threads)

    def write(self, connection: DuckDBPyConnection, progress: Progress) -> None:
        """Count, and write the counts into a generation that is being built."""
        if self.again:
            self._begin(connection)
        rows: list[Counted] = []
        for done, row in enumerate(self._counts(), 1):
            rows.append(row)
            progress(Advance("stats", done, len(self.files)))
            if len(rows) == _ROWS:
                self._insert(connection, rows)
                rows = []
        self._insert(connection, rows)
        bitmaps.build_classes(connection, len(self.classes))

    def _begin(self, connection: DuckDBPyConnection) -> None:
        connection.execute("DROP TABLE IF EXISTS label")
        connection.execute("DELETE FROM class")
        connection.execute(schema.label_table(len(self.classes)))
        for index, label in enumerate(self.classes):
            colour = f"#{label.colours[0]:06x}" if label.colours else ""
            connection.execute("INSERT INTO class VALUES (?, ?, ?)", [index, label.name, colour])

    def _insert(self, connection: DuckDBPyConnection, rows: list[Counted]) -> None:
        columns: dict[str, Any] = {
            "file": pa.array([row.file for row in rows], pa.int64()),
            "why": pa.array([row.why or None for row in rows], pa.string()),
            "unknown": pa.array([row.unknown for row in rows], pa.uint64()),
        }
        for index in range(len(self.classes)):
            values = [row.counts[index] if row.counts is not None else None for row in rows]
            columns[schema.class_column(index)] = pa.array(values, pa.uint64())
        put_rows(connection, "INSERT INTO label", pa.table(columns))
