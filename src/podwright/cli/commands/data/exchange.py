"""`data export` and `data import`: selections in formats of the field, and datasets that come in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from podwright.cli.commands.data.options import complete_name, open_catalog, shown_progress
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output


def data_export_command(
    selection: Annotated[
        str, typer.Argument(metavar="SELECTION", autocompletion=complete_name, help="What is written.")
    ],
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="csv, parquet, coco, yolo, webdataset or croissant.")
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="A folder that is not there yet.")],
    as_json: AsJson = False,
) -> None:
    """Write a selection in a format of the field."""
    with shown_progress() as progress:
        exported = open_catalog().export(selection, format_name, to, progress)
    if as_json:
        return output.print_json(exported.as_json())
    written = f"{figures.count(exported.files, 'file')}, {figures.size(exported.bytes)}, {to}"
    lines = [*output.aligned(exported.format, written, sys.stdout)]
    if exported.note:
        lines += output.aligned("note", exported.note, sys.stdout)
    return print("\n".join(lines))


def data_import_command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder of the dataset.")],
    format_name: Annotated[str, typer.Option("--format", metavar="FORMAT", help="coco, yolo, cityscapes or kitti.")],
    name: Annotated[str, typer.Option("--name", metavar="DATASET", help="What to call it.")],
    as_json: AsJson = False,
) -> int:
    """Scan a dataset of another format and count what its labels hold; its files stay where they are."""
    with shown_progress() as progress:
        imported = open_catalog().import_tree(path, format_name, name, progress)
    scanned, statistics = imported.scanned, imported.statistics
    for row in statistics.broken_files:
        output.say("broken", f"{output.one_line(row['path'])}: {row['why']}")
    if as_json:
        output.print_json(imported.as_json())
        return int(bool(scanned.unread))
    tree = f"{figures.count(scanned.files, 'file')} in {figures.count(scanned.directories, 'folder')}"
    lines = {
        name: f"{tree}, {figures.size(scanned.size_bytes)}, layout {scanned.layout}",
        "labels": f"{figures.count(statistics.images, 'image')}, {statistics.broken} broken",
        "pixels": f"of a class are {imported.pixels_of}",
    }
    if imported.objects is not None:
        lines["objects"] = f"{imported.objects}, as tags such as `Car.objects>2`"
    for word, text in lines.items():
        print("\n".join(output.aligned(word, text, sys.stdout)))
    return int(bool(scanned.unread))
