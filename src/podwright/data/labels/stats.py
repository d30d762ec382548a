"""Counts what the labels of a dataset hold, into a new generation; a label is read once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from podwright.data.catalog import schema
from podwright.data.catalog.dataset import Dataset, open_dataset
from podwright.data.catalog.files import FILE
from podwright.data.catalog.store import Store
from podwright.data.labels import coco, counting
from podwright.data.labels.classes import classes_of
from podwright.data.labels.images import Counted, LabelClass, LabelFile
from podwright.data.query import bitmaps
from podwright.data.selecting.samples import is_role
from podwright.data.tree.paths import as_json, path_bytes
from podwright.files.whole import write_whole
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from podwright.data.labels.runs import LabelRun

MAX_NAMED = 100
"""Broken files are counted all, and so many of them are named."""
_ROWS = 10_000
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ClassShare:
    """One class over the whole dataset."""

    name: str
    pixels: int
    images: int
    share: float


@dataclass(frozen=True)
class Statistics:
    """What the labels of a dataset hold."""

    dataset: str
    images: int
    broken: int
    unknown: int
    """Pixels whose colour means no class."""
    classes: tuple[ClassShare, ...]
    broken_files: tuple[dict[str, str], ...]
    counted: int
    """How many labels were read just now."""

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data stats`."""
        rows = [{"name": c.name, "pixels": c.pixels, "images": c.images, "share": c.share} for c in self.classes]
        return {
            "dataset": self.dataset,
            "images": self.images,
            "broken": self.broken,
            "unknown": self.unknown,
            "classes": rows,
            "broken_files": list(self.broken_files),
            "counted": self.counted,
        }


def count_labels(
    store: Store, name: str, progress: Progress | None = None, elsewhere: LabelRun | None = None
) -> Statistics:
    """Count the labels that are not counted yet, here or elsewhere, and return what all of them hold."""
    with open_dataset(store, name) as dataset:
        if dataset.layout.labels is None:
            message = f"{name} has the layout {dataset.layout.name}, in which no labels are known"
            raise refuse(message, hint="layouts with labels are a2d2, coco and images: scan it with --layout")
        if elsewhere is not None and dataset.layout.labels != "colours":
            message = f"{name} has no label images, whose pixels nodes could count"
            raise refuse(message, hint=f"podwright data stats {name}", field="--on")
    with store.writing(name) as part:
        # Within the lock: what is counted must be what is copied.
        with open_dataset(store, name) as dataset:
            work = _Work(dataset, elsewhere)
        if work.files:
            shutil.copyfile(store.file(name, store.generation(name)), part / FILE)
            with store.building(part) as connection:
                work.write(connection, progress)
            store.publish(name, part)
    with open_dataset(store, name) as dataset:
        return statistics(dataset, len(work.files))


class _Work:
    """What is to be counted in a dataset, and how."""

    def __init__(self, dataset: Dataset, elsewhere: LabelRun | None) -> None:
        self.layout, self.root, self._elsewhere = dataset.layout, dataset.root_bytes, elsewhere
        self.known = dataset.classes
        self.annotations = self._annotations(dataset)
        self.classes = self._classes(dataset)
        names = [label.name for label in self.classes]
        # Counts of other classes than these, or by annotations that may have changed, are made anew.
        self.anew = names != self.known or dataset.layout.labels == "coco"
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
        done = "" if self.anew else "AND f.id NOT IN (SELECT file FROM label)"
        label = "f.label" if dataset.layout.labels == "folders" else "''"
        query = f"""SELECT f.id, d.raw, f.raw, d.path, f.name, {label} FROM file f JOIN directory d ON d.id = f.dir
            WHERE ({is_role(dataset.layout, dataset.layout.label_role)}) AND {label} IS NOT NULL {done} ORDER BY f.id"""
        files = []
        for number, folder_raw, name_raw, folder, name, of_folder in dataset.connection.execute(query).fetchall():
            raw = path_bytes(folder_raw, name_raw, folder, name) or (folder + name).encode()
            files.append(LabelFile(number, self.root + b"/" + raw, folder + name, of_folder))
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

    def write(self, connection: DuckDBPyConnection, progress: Progress | None) -> None:
        """Count, and write the counts into a generation that is being built."""
        if self.anew:
            self._begin(connection)
        rows: list[Counted] = []
        for done, row in enumerate(self._counts(), 1):
            rows.append(row)
            if progress is not None:
                progress(done, len(self.files))
            if len(rows) == _ROWS:
                self._insert(connection, rows)
                rows = []
        self._insert(connection, rows)
        connection.execute(schema.whole_view(self.layout, [label.name for label in self.classes]))
        bitmaps.build_classes(connection, len(self.classes))

    def _begin(self, connection: DuckDBPyConnection) -> None:
        connection.execute("DROP VIEW files")
        connection.execute("DROP TABLE IF EXISTS label")
        connection.execute("DELETE FROM class")
        connection.execute(schema.label_table(len(self.classes)))
        for place, label in enumerate(self.classes):
            colour = f"#{label.colours[0]:06x}" if label.colours else ""
            connection.execute("INSERT INTO class VALUES (?, ?, ?)", [place, label.name, colour])

    def _insert(self, connection: DuckDBPyConnection, rows: list[Counted]) -> None:
        columns: dict[str, Any] = {
            "file": pa.array([row.file for row in rows], pa.int64()),
            "why": pa.array([row.why or None for row in rows], pa.string()),
            "unknown": pa.array([row.unknown for row in rows], pa.uint64()),
        }
        for place in range(len(self.classes)):
            values = [row.counts[place] if row.counts is not None else None for row in rows]
            columns[schema.class_column(place)] = pa.array(values, pa.uint64())
        connection.register("counted", pa.table(columns))
        connection.execute("INSERT INTO label SELECT * FROM counted")
        connection.unregister("counted")


def statistics(dataset: Dataset, counted: int = 0) -> Statistics:
    """Return what the counted labels of a dataset hold."""
    if not dataset.classes:
        return Statistics(dataset.name, 0, 0, 0, (), (), counted)
    columns = [schema.class_column(place) for place in range(len(dataset.classes))]
    sums = ", ".join(f"coalesce(sum({column}), 0)::BIGINT, count_if({column} > 0)" for column in columns)
    query = (
        f"SELECT count_if(why IS NULL), count_if(why IS NOT NULL), coalesce(sum(unknown), 0)::BIGINT, {sums} FROM label"
    )
    images, broken, unknown, *values = dataset.connection.execute(query).fetchone() or ()
    pixels, holding = values[::2], values[1::2]
    whole = sum(pixels) or 1
    classes = []
    for name, count, of_images in zip(dataset.classes, pixels, holding, strict=True):
        classes.append(ClassShare(name, count, of_images, count / whole))
    return Statistics(dataset.name, images, broken, unknown, tuple(classes), tuple(_broken(dataset)), counted)


def _broken(dataset: Dataset) -> Iterator[dict[str, str]]:
    query = f"""SELECT d.raw, f.raw, d.path, f.name, l.why FROM label l JOIN file f ON f.id = l.file
        JOIN directory d ON d.id = f.dir WHERE l.why IS NOT NULL ORDER BY f.id LIMIT {MAX_NAMED}"""
    for folder_raw, name_raw, folder, name, why in dataset.connection.execute(query).fetchall():
        yield {**as_json(folder + name, path_bytes(folder_raw, name_raw, folder, name)), "why": why}


def per_image(dataset: Dataset) -> pa.Table:
    """Return the table of a row for each label and a column for each class, `path` first."""
    columns = ["d.path || f.name AS path"]
    for place, name in enumerate(dataset.classes):
        columns.append(f"l.{schema.class_column(place)} AS {schema.quoted(name)}")
    query = f"""SELECT {", ".join(columns)} FROM label l JOIN file f ON f.id = l.file JOIN directory d ON d.id = f.dir
        WHERE l.why IS NULL ORDER BY f.id"""
    return dataset.connection.sql(query).to_arrow_table()


def check_table(path: Path) -> None:
    """Refuse a file that no table can be written to; asked before the hours of work for it."""
    if path.suffix.lower() not in _WRITERS:
        raise refuse("is neither .csv nor .parquet", hint="give it one of these endings", file=str(path))
    if not path.parent.is_dir():
        raise refuse("there is no such folder", hint="make it first", file=str(path.parent))


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as its file's name says: .csv or .parquet."""
    check_table(path)
    sink = pa.BufferOutputStream()
    _WRITERS[path.suffix.lower()](table, sink)
    write_whole(path, sink.getvalue().to_pybytes(), mode=0o644)


def _write_csv(table: pa.Table, sink: pa.BufferOutputStream) -> None:
    from pyarrow import csv

    csv.write_csv(table, sink, csv.WriteOptions(quoting_style="needed"))


def _write_parquet(table: pa.Table, sink: pa.BufferOutputStream) -> None:
    from pyarrow import parquet

    parquet.write_table(table, sink)


_WRITERS = {".csv": _write_csv, ".parquet": _write_parquet}
