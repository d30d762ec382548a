"""Puts reports on disk."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from podwright.analysis.gather import gather
from podwright.report.comparison import render_comparison
from podwright.report.page import render_run


def write_run_report(folder: Path) -> Path:
    """Write `report.html` into the run's folder and return its path."""
    return _replace(Path(folder) / "report.html", render_run(gather(Path(folder))))


def write_comparison(folders: Sequence[Path], to: Path | None = None) -> Path:
    """Write the comparison of several runs, by default into the first run's folder, and return its path."""
    target = to or Path(folders[0]) / "comparison.html"
    return _replace(target, render_comparison([gather(Path(folder)) for folder in folders]))


def _replace(path: Path, text: str) -> Path:
    """Write whole or not at all: someone may be looking at the old page."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path
