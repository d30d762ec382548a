"""Writes a selection in a format of the field, into a folder that is there whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import yaml
from PIL import Image

from podwright.data.exchange.croissant import croissant_of
from podwright.data.exchange.samples import ExportSample, LabelledSelection
from podwright.data.labels.statistics import write_table
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.selecting.selections import Selection
from podwright.data.selecting.verifying import verify_files
from podwright.data.tree.roots import is_address
from podwright.files.whole import whole_path
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse

SHARD_SAMPLES = 1000
TABLE = "samples"
"""The name of the file that lists a selection, without its ending."""


@dataclass(frozen=True)
class Exported:
    """What was written."""

    files: int
    bytes: int
    format: str
    note: str
    """What the format does not hold; nothing where it holds all."""

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data export`."""
        return asdict(self)


@dataclass(frozen=True)
class ExportWork:
    """A selection on its way into a folder."""

    labelled: LabelledSelection
    folder: Path
    progress: Progress

    def samples(self) -> Iterator[ExportSample]:
        """Yield every sample, and report how far it is."""
        total = sum(len(split.samples) for split in self.labelled.selection.splits.values())
        for done, sample in enumerate(self.labelled.samples(), 1):
            yield sample
            self.progress(Advance("export", done, total))


def export(selection: Selection, format_name: str, to: Path, progress: Progress = unheard) -> Exported:
    """Write a selection; refuse files that are not what was chosen, and a folder that has something in it."""
    if format_name not in FORMATS:
        message = f'"{format_name}" is no format that a selection is written in'
        raise refuse(message, hint=one_of(format_name, "format", FORMATS), field="--format")
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise refuse("there is something already", hint="give a folder that is not there yet", file=str(to))
    copies = FORMATS[format_name] not in (_csv, _parquet, _croissant)
    if copies and selection.roots.has_address:
        hint = f"podwright data stage {selection.name} --to DIR, scan it there and select again"
        raise refuse(f"{selection.dataset} lies behind an address", hint=hint, field="--format")
    if not selection.roots.has_address:
        verify_files(selection, None, everything=False)
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        with whole_path(to) as draft:
            draft.mkdir()
            note = FORMATS[format_name](ExportWork(LabelledSelection(selection), draft, progress))
            sizes = [path.stat().st_size for path in draft.rglob("*") if path.is_file()]
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise refuse(f"{error.filename or to} cannot be written: {reason}", field="--to", exit_code=1) from None
    return Exported(len(sizes), sum(sizes), format_name, note)


def _rows(work: ExportWork) -> pa.Table:
    """Return a row for each file: its sample, split and role, where it lies, and what identifies it."""
    columns: dict[str, list[Any]] = {name: [] for name in ("split", "sample", "role", "path", "file", "size", "sha256")}
    for sample in work.samples():
        for file in sample.sample.files:
            root, _ = sample.roots.place(file.path_bytes)
            place = sample.path(file)
            if is_address(root):
                place = f"{os.fsdecode(root)}/{quote(place.removeprefix(f'{os.fsdecode(root)}/'))}"
            row = (sample.split, sample.number, file.role, file.path, place, file.size, file.sha256)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    types = {"sample": pa.int64(), "size": pa.int64()}
    return pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in columns.items()})


def _csv(work: ExportWork) -> str:
    write_table(_rows(work), work.folder / f"{TABLE}.csv")
    return "files are listed, not copied"


def _parquet(work: ExportWork) -> str:
    write_table(_rows(work), work.folder / f"{TABLE}.parquet")
    return "files are listed, not copied"


def _croissant(work: ExportWork) -> str:
    table = work.folder / f"{TABLE}.csv"
    write_table(_rows(work), table)
    document = croissant_of(work.labelled.selection, table.name, table.read_bytes())
    (work.folder / "croissant.json").write_text(json.dumps(document, indent=1) + "\n")
    return "files are listed, not copied"


def _coco(work: ExportWork) -> str:
    labelled = work.labelled
    numbers = {label.name: number for number, label in enumerate(labelled.classes, 1)}
    categories = [{"id": number, "name": name} for name, number in numbers.items()]
    documents: dict[str, dict[str, Any]] = {}
    count = 0
    for sample in work.samples():
        empty = {"info": _info(labelled), "images": [], "annotations": [], "categories": categories}
        document = documents.setdefault(sample.split, empty)
        width, height = _copied_image(sample, work.folder / sample.split)
        image = {"id": sample.number + 1, "file_name": sample.name, "width": width, "height": height}
        document["images"].append(image)
        for found in labelled.objects(sample):
            count += 1
            row: dict[str, Any] = {"id": count, "image_id": sample.number + 1, "category_id": numbers[found.name]}
            row |= {"bbox": list(found.box), "area": found.area, "iscrowd": int(found.is_crowd)}
            document["annotations"].append({**row, "segmentation": found.outline if found.outline else []})
    (work.folder / "annotations").mkdir()
    for split, document in documents.items():
        (work.folder / "annotations" / f"instances_{split}.json").write_text(json.dumps(document))
    return "a class of a mask is one object of each image, marked as a crowd" if labelled.has_masks else ""


def _info(labelled: LabelledSelection) -> dict[str, str]:
    selection = labelled.selection
    return {"description": f"{selection.name} of {selection.dataset}", "version": selection.digest}


def _copied_image(sample: ExportSample, folder: Path) -> tuple[int, int]:
    """Copy the image of a sample and return its size."""
    folder.mkdir(parents=True, exist_ok=True)
    source = sample.path(sample.sample.image)
    shutil.copyfile(source, folder / sample.name)
    with Image.open(source) as image:
        return image.size


def _yolo(work: ExportWork) -> str:
    labelled = work.labelled
    if labelled.has_masks:
        raise labelled.unfit(f"the labels of {labelled.selection.dataset} are masks, and YOLO has boxes")
    numbers = {label.name: number for number, label in enumerate(labelled.classes)}
    for sample in work.samples():
        width, height = _copied_image(sample, work.folder / "images" / sample.split)
        lines = []
        for found in labelled.objects(sample):
            left, top, wide, high = found.box
            shares = ((left + wide / 2) / width, (top + high / 2) / height, wide / width, high / height)
            lines.append(" ".join([str(numbers[found.name]), *(f"{share:.9f}" for share in shares)]) + "\n")
        label = work.folder / "labels" / sample.split / f"{sample.stem}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text("".join(lines))
    splits = {split: f"images/{split}" for split in labelled.selection.splits}
    document = {**splits, "names": dict(enumerate(numbers))}
    (work.folder / "data.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    return "boxes, not outlines" if labelled.layout.labels == "coco" else ""


def _webdataset(work: ExportWork) -> str:
    """Write shards of tar; the members of a sample have one name, and end in the role and what they are."""
    shard: tarfile.TarFile | None = None
    written: dict[str, int] = {}
    try:
        for sample in work.samples():
            place = written.get(sample.split, 0)
            if place % SHARD_SAMPLES == 0 or shard is None:
                if shard:
                    shard.close()
                path = work.folder / f"{sample.split}-{place // SHARD_SAMPLES:06d}.tar"
                shard = tarfile.open(path, "w", format=tarfile.GNU_FORMAT)  # noqa: SIM115 - closed below
            written[sample.split] = place + 1
            for file in sample.sample.files:
                ending = file.path.rpartition(".")[2].lower()
                role = "" if file.role in ("image", ending) else f"{file.role}."
                shard.add(sample.path(file), f"{sample.number:09d}.{role}{ending}", filter=_plain_member)
    finally:
        if shard:
            shard.close()
    return ""


def _plain_member(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return a member without owner and time: the same selection makes the same shards."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member


FORMATS: dict[str, Callable[[ExportWork], str]] = {
    "csv": _csv,
    "parquet": _parquet,
    "coco": _coco,
    "yolo": _yolo,
    "webdataset": _webdataset,
    "croissant": _croissant,
}
"""What writes each format; it returns what the format does not hold."""
