"""`data show` and `data page`: all that is known of one file, and files of a dataset as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.data.options import DatasetName, FilterText, open_catalog, path_text
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.data import FileDescription

_OWN = ("path", "path_bytes", "size", "mtime", "owner", "mode")
"""What is laid out by itself; the rest of a file's facts are columns of its layout."""


def data_show_command(
    dataset: DatasetName,
    path: Annotated[str, typer.Argument(metavar="PATH", help="Of a file below the root, as `find` shows it.")],
    as_json: AsJson = False,
) -> None:
    """Print all that is known of one file."""
    described = open_catalog().describe(dataset, path)
    if as_json:
        return output.print_json(described.as_json())
    return print("\n".join(_described(described)))


def _described(described: FileDescription) -> Iterator[str]:
    facts = described.as_json()
    lines = {
        described.kind: path_text(facts["path"], None),
        "size": figures.size(facts["size"]),
        "changed": facts["mtime"],
        "owner": f"{facts['owner']}:{described.group}, mode {facts['mode']}",
        "sha256": described.sha256 or "not read yet: podwright data scan --checksums",
    }
    for name, value in described.match.values.items():
        if value is not None and name not in _OWN:
            lines[name] = output.one_line(str(value))
    if described.tags:
        lines["tags"] = "\n".join(output.one_line(f"{name}={value}") for name, value in described.tags.items())
    if described.why:
        lines["label"] = described.why
    elif described.classes is not None:
        counts = sorted(described.classes.items(), key=lambda row: -row[1])
        lines["pixels"] = "\n".join(f"{name} {count}" for name, count in counts) or "of no class"
    for word, text in lines.items():
        yield from output.aligned(word, text, sys.stdout)
    for member in described.sample:
        yield from output.aligned(member.role, path_text(member.path, None), sys.stdout)


def data_page_command(
    dataset: DatasetName,
    filter_text: FilterText = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the page goes.")] = Path("page.html"),
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="So many samples, from all over.")] = 24,
    as_json: AsJson = False,
) -> None:
    """Write samples that a filter chooses as one page: pictures, labels over them, and their classes."""
    from podwright.report import write_dataset_page

    gallery = open_catalog().gallery(dataset, filter_text, limit)
    path = write_dataset_page(gallery, out)
    if as_json:
        return output.print_json({"page": str(path), "samples": gallery.samples, "shown": len(gallery.pictures)})
    return print("\n".join(output.aligned("page", path.resolve().as_uri(), sys.stdout)))
