"""Selections: samples that are frozen under a name, with a digest, a seed and where they come from.

selections/NAME/selection.json    name, digest, seed, lineage, splits
selections/NAME/samples.parquet   a row for each file: split, sample, role, path, size, sha256, mtime_ns
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.data.catalog.store import Store, check_name
from podwright.data.selecting.pool import DataSample, SampleFile
from podwright.data.tree.roots import Roots, roots_of
from podwright.files.whole import make_private, whole_path, write_whole
from podwright.spec.problems import refuse

ALL = "all"
"""The one split of a selection that is not split."""


@dataclass(frozen=True)
class Split:
    """The samples of one split, and how far their classes are from the whole dataset's."""

    samples: tuple[DataSample, ...]
    distance: float | None
    pixels: tuple[int, ...] = ()


@dataclass(frozen=True)
class Selection:
    """A selection as it is frozen; `classes` are those that the pixels of its splits count."""

    name: str
    dataset: str
    root: bytes
    layout: str
    seed: int
    lineage: Mapping[str, Any]
    splits: Mapping[str, Split]
    classes: tuple[str, ...]
    created_at: float
    further_roots: tuple[tuple[str, bytes], ...] = ()

    @property
    def roots(self) -> Roots:
        """Return where its files lie."""
        return Roots(self.root, self.further_roots)

    @property
    def digest(self) -> str:
        """Return what tells two selections apart that hold different files; not name, time, root or generation."""
        lines = []
        for split, sample in self.rows():
            for file in sample.files:
                fields = [split.encode(), file.path_bytes, str(file.size).encode(), (file.sha256 or "").encode()]
                lines.append(b"".join(field + b"\0" for field in fields))
        return f"sha256:{hashlib.sha256(b''.join(sorted(lines))).hexdigest()}"

    def rows(self) -> Iterator[tuple[str, DataSample]]:
        """Yield every sample with the name of its split."""
        for name, split in self.splits.items():
            for sample in split.samples:
                yield name, sample

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data select`."""
        splits = {name: {"count": len(s.samples), "distance": s.distance} for name, s in self.splits.items()}
        return {
            "name": self.name,
            "digest": self.digest,
            "seed": self.seed,
            "lineage": dict(self.lineage),
            "splits": splits,
        }


def freeze(store: Store, selection: Selection) -> None:
    """Write a selection; a name that is taken is refused."""
    check_free(store, selection.name)
    make_private(store.selections)
    with whole_path(store.selections / selection.name) as draft:
        draft.mkdir(mode=0o700)
        inner = {
            "dataset": selection.dataset,
            "root": selection.root.hex(),
            **selection.roots.kept(),
            "layout": selection.layout,
            "classes": list(selection.classes),
            "pixels": {name: list(split.pixels) for name, split in selection.splits.items()},
            "created_at": selection.created_at,
        }
        document = {**selection.as_json(), **inner}
        write_whole(draft / "selection.json", json.dumps(document, indent=1).encode() + b"\n")
        write_whole(draft / "samples.parquet", _parquet(selection))
        # Somebody else may have frozen this name meanwhile: theirs stays.
        check_free(store, selection.name)


def check_free(store: Store, name: str) -> None:
    """Refuse a name that no selection can have, or that a dataset or a selection has already."""
    check_name(name)
    if name in store.datasets():
        raise refuse(f"{name} is the name of a dataset", hint="give the selection another name", field="--name")
    if name in store.selection_names():
        hint = f"what is frozen never changes: take another name, or `podwright data forget {name}`"
        raise refuse(f"there is a selection {name} already", hint=hint, field="--name")


def _parquet(selection: Selection) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for number, (split, sample) in enumerate(selection.rows()):
        for file in sample.files:
            facts = (file.role, file.path, file.raw, file.size, file.sha256, file.mtime_ns)
            row = (split, number, sample.key, sample.group, *facts)
            for name, value in zip(_COLUMNS, row, strict=True):
                columns[name].append(value)
    types = {"sample": pa.int64(), "size": pa.int64(), "path_bytes": pa.binary(), "mtime_ns": pa.int64()}
    fields = [pa.field(name, types.get(name, pa.string())) for name in _COLUMNS]
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns, schema=pa.schema(fields)), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


_COLUMNS = ("split", "sample", "key", "group", "role", "path", "path_bytes", "size", "sha256", "mtime_ns")


def load(store: Store, name: str) -> Selection:
    """Read a selection, or refuse a name that there is none of; what was changed by hand is told by its digest."""
    names = store.selection_names()
    if name not in names:
        raise store.unknown(name, names, "selection", f"podwright data select DATASET --name {name}")
    folder = store.selections / name
    try:
        selection, digest = _read(folder)
        is_whole = selection.digest == digest
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise refuse(f"cannot be read: {error}", hint=f"podwright data forget {name}", file=str(folder)) from None
    if not is_whole:
        message = "is not what was frozen: its digest is another"
        raise refuse(message, hint=f"podwright data forget {name}, and select again", file=str(folder))
    return selection


def _read(folder: Path) -> tuple[Selection, str]:
    from pyarrow import parquet

    document = json.loads((folder / "selection.json").read_bytes())
    samples: dict[str, list[DataSample]] = {name: [] for name in document["splits"]}
    for split, sample in _samples(parquet.read_table(folder / "samples.parquet").to_pylist()):
        samples[split].append(sample)
    splits = {}
    for name, entry in document["splits"].items():
        splits[name] = Split(tuple(samples[name]), entry["distance"], tuple(document["pixels"][name]))
    selection = Selection(
        name=folder.name,
        dataset=document["dataset"],
        root=bytes.fromhex(document["root"]),
        layout=str(document["layout"]),
        seed=document["seed"],
        lineage=document["lineage"],
        splits=splits,
        classes=tuple(document["classes"]),
        created_at=document["created_at"],
        further_roots=roots_of(b"", document.get("roots")).labelled,
    )
    return selection, str(document["digest"])


def _samples(rows: Sequence[dict[str, Any]]) -> Iterable[tuple[str, DataSample]]:
    by_number: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        by_number.setdefault(row["sample"], []).append(row)
    for group in by_number.values():
        files = [_sample_file(row) for row in group]
        first = group[0]
        yield first["split"], DataSample(first["key"], first["group"], tuple(files))


def _sample_file(row: dict[str, Any]) -> SampleFile:
    # Selections of 0.2 and before have no times.
    facts = (row["role"], row["size"], row["sha256"], row.get("mtime_ns"))
    file = SampleFile(row["path"], row["path_bytes"], *facts)
    if not isinstance(file.role, str) or not isinstance(file.size, int):
        raise TypeError(f"{file.path} has no role or no size")
    if {b"", b".", b".."} & set(file.path_bytes.split(b"/")):
        raise ValueError(f"{file.path} leads out of the dataset")
    return file


def check_split(selection: Selection, split: str | None) -> str | None:
    """Return a split's name, or refuse one that the selection has not."""
    if split is not None and split not in selection.splits:
        hint = f"splits of {selection.name} are {', '.join(selection.splits)}"
        raise refuse(f'{selection.name} has no split "{split}"', hint=hint)
    return split


def forget_selection(store: Store, name: str) -> None:
    """Remove a selection; the files that it names stay."""
    shutil.rmtree(store.selections / name)
