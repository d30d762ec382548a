"""Puts reports on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.files.whole import write_whole
from podwright.launch import publish_page
from podwright.reading.run_data import gather
from podwright.report.comparison import render_comparison
from podwright.report.page import render_run

if TYPE_CHECKING:
    from podwright.launch import Run


def write_report(runs: Sequence[Run]) -> Path:
    """Write one report: of the run, or a comparison of several or of a parent's points."""
    folders: list[Path] = []
    for run in runs:
        run.folder.refuse_stray()
        folders += [part.folder.path for part in run.parts()]
    if len(folders) == 1:
        publish_page(runs[0], lambda folder: render_run(gather(folder)))
        return write_run_report(folders[0])
    return write_comparison(folders, runs[0].folder.path / "comparison.html")


def write_run_report(folder: Path) -> Path:
    """Write `report.html` into the run's folder and return its path."""
    return write_page(Path(folder) / "report.html", render_run(gather(Path(folder))))


def write_comparison(folders: Sequence[Path], to: Path | None = None) -> Path:
    """Write the comparison of several runs, by default into the first run's folder, and return its path."""
    page = render_comparison([gather(Path(folder)) for folder in folders])
    if to is not None:
        return write_page(to, page, mode=0o644)
    return write_page(Path(folders[0]) / "comparison.html", page)


def write_page(path: Path, text: str, mode: int = 0o600) -> Path:
    """Write the whole page or none of it: someone may be looking at the old one.

    What a run wrote may hold halves of characters, which no file can: each is a question mark.
    """
    write_whole(path, text.encode("utf-8", "replace"), mode)
    return path
