"""Counts what the labels of a dataset hold, into a new generation; a label is read once."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from PIL import Image

from podwright.data.catalog import schema
from podwright.data.catalog.dataset import Dataset, open_dataset
from podwright.data.catalog.files import put_rows
from podwright.data.catalog.store import Store
from podwright.data.labels import coco, counting, objects
from podwright.data.labels.classes import CLASS_LIST, classes_of, grouped, parse_class_list, published_classes
from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.data.labels.statistics import MAX_NAMED, Statistics
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.query import bitmaps
from podwright.data.selecting.samples import is_role
from podwright.data.tree.layouts import layouts
from podwright.data.tree.reading import AT_ONCE, NotReadError, RootsReader
from podwright.data.tree.roots import is_address
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
            names = ", ".join(sorted(known.name for known in layouts().values() if known.labels))
            raise refuse(message, hint=f"layouts with labels are {names}: scan it with --layout")
        if elsewhere is not None and dataset.layout.labels != "colours":
            message = f"{name} has no label images, whose pixels nodes could count"
            raise refuse(message, hint=f"podwright data stats {name}", field="--on")
        if elsewhere is not None and dataset.roots.has_address:
            message = f"{name} lies in {dataset.roots.shown}, and nodes read folders"
            raise refuse(message, hint=f"podwright data stats {name}", field="--on")
    with store.writing(name) as draft:
        # Within the lock: what is counted must be what is copied.
        with open_dataset(store, name) as dataset:
            work = _Work(dataset, elsewhere)
        if work.files:
            with store.amending(name, draft) as connection:
                work.write(connection, progress)
            if work.interrupted:  # what was counted stays, and the next time the rest is
                raise work.interrupted
    with open_dataset(store, name) as dataset:
        counted = len(work.files) - work.not_read
        named = tuple(work.named_not_read)
        return replace(dataset.statistics(), counted=counted, not_read=work.not_read, not_read_files=named)


class _Work:
    """What is to be counted in a dataset, and how."""

    def __init__(self, dataset: Dataset, elsewhere: LabelRun | None) -> None:
        self.layout, self.roots, self._elsewhere = dataset.layout, dataset.roots, elsewhere
        self._reader = RootsReader(self.roots)
        self.interrupted: KeyboardInterrupt | None = None
        self.not_read = 0
        self.named_not_read: list[dict[str, str]] = []
        self.annotations = self._annotations(dataset)
        reads = objects.BOXES.get(dataset.layout.labels or "")
        self._boxes = reads(self.roots) if reads else None
        self.classes = self._classes(dataset)
        names = [label.name for label in self.classes]
        # Counts of other classes than these, or by files beside the images that may have changed, are made again.
        beside = self.annotations is not None or self._boxes is not None
        self.again = names != dataset.classes or beside
        self.files = self._files(dataset)

    def _annotations(self, dataset: Dataset) -> coco.Annotations | None:
        if dataset.layout.labels != "coco":
            return None
        condition = dataset.condition("ext=json and folder~annotations and name~instances_")
        paths = [match.path_bytes for match in dataset.find(condition)]
        try:
            return coco.read_annotations(paths, self._reader)
        except NotReadError as error:
            raise refuse(f"its annotations cannot be read: {error}", exit_code=3) from None

    def _classes(self, dataset: Dataset) -> list[LabelClass]:
        if self.annotations is not None:
            return self.annotations.classes
        if self._boxes is not None:
            return self._boxes.classes
        if dataset.layout.labels == "folders":
            query = "SELECT DISTINCT label FROM file WHERE label IS NOT NULL ORDER BY label"
            return [LabelClass(name) for (name,) in dataset.connection.execute(query).fetchall()]
        if is_address(self.roots.first) and not dataset.layout.classes:
            return self._remote_classes(dataset)
        return classes_of(dataset.layout, Path(os.fsdecode(self.roots.first)))

    def _remote_classes(self, dataset: Dataset) -> list[LabelClass]:
        for name in CLASS_LIST:
            if dataset.count_files(dataset.condition(f'path="{name}"')):
                try:
                    with self._reader.opened(name.encode()) as file:
                        return grouped(parse_class_list(file.read(), name))
                except NotReadError as error:
                    raise refuse(f"cannot be read: {error}", file=name, exit_code=3) from None
        return published_classes()

    @contextmanager
    def _remote_image(self, file: LabelFile) -> Iterator[Image.Image]:
        try:
            with self._reader.opened_whole(file.path) as content, Image.open(content) as image:
                yield image
        except NotReadError as error:
            raise OSError(errno.EIO, str(error)) from None

    def _files(self, dataset: Dataset) -> list[LabelFile]:
        done = "" if self.again else "AND f.id NOT IN (SELECT file FROM label)"
        label = "f.label" if dataset.layout.labels == "folders" else "''"
        query = f"""SELECT f.id, {schema.PATH_BYTES}, d.path || f.name, {label}
            FROM file f JOIN directory d ON d.id = f.dir
            WHERE ({is_role(dataset.layout, dataset.layout.label_role)}) AND {label} IS NOT NULL {done} ORDER BY f.id"""
        files = []
        for number, path, text, of_folder in dataset.connection.execute(query).fetchall():
            files.append(LabelFile(number, self.roots.whole(path), text, of_folder))
        return files

    def _counts(self) -> Iterator[Counted]:
        if self.annotations is not None:
            return coco.count_annotated(self.files, self.annotations)
        if self._elsewhere is not None:
            return self._elsewhere.count(self.roots, self.files, self.classes)
        threads, opened = len(os.sched_getaffinity(0)), counting.open_image
        if self.roots.has_address:
            threads, opened = AT_ONCE, self._remote_image
        if self._boxes is not None:
            return objects.count_objects(self.files, self._boxes, threads)
        if self.layout.labels == "folders":
            return counting.count_folders(self.files, self.classes, threads, opened)
        return counting.count_images(self.files, self.classes, threads, opened)

    def write(self, connection: DuckDBPyConnection, progress: Progress) -> None:
        """Count, and write the counts into a generation that is being built."""
        if self.again:
            self._begin(connection)
        rows: list[Counted] = []
        try:
            for done, row in enumerate(self._counts(), 1):
                if row.is_read:
                    rows.append(row)
                else:
                    self._note_not_read(row)
                progress(Advance("stats", done, len(self.files)))
                if len(rows) == _ROWS:
                    self._insert(connection, rows)
                    rows = []
        except KeyboardInterrupt as error:
            self.interrupted = error
        if self.not_read == len(self.files):
            first = self.named_not_read[0]
            message = f"none of {self.not_read} labels could be read: {first['path']}: {first['why']}"
            raise refuse(message, hint="is the dataset's root there? `podwright data ls` has it", exit_code=3)
        self._insert(connection, rows)
        bitmaps.build_classes(connection, len(self.classes))

    def _note_not_read(self, row: Counted) -> None:
        if not self.not_read:
            self._paths = {file.id: file.shown for file in self.files}
        self.not_read += 1
        if len(self.named_not_read) < MAX_NAMED:
            self.named_not_read.append({"path": self._paths[row.file], "why": row.why})

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
