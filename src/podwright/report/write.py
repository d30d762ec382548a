"""Puts reports on disk."""

from collections.abc import Sequence
from pathlib import Path

from podwright.analysis.gather import gather
from podwright.report.comparison import render_comparison
from podwright.report.page import render_run
from podwright.runs.files import write_whole


def write_run_report(folder: Path) -> Path:
    """Write `report.html` into the run's folder and return its path."""
    return _write(Path(folder) / "report.html", render_run(gather(Path(folder))))


def write_comparison(folders: Sequence[Path], to: Path | None = None) -> Path:
    """Write the comparison of several runs, by default into the first run's folder, and return its path."""
    page = render_comparison([gather(Path(folder)) for folder in folders])
    if to is not None:
        return _write(to, page, mode=0o644)
    return _write(Path(folders[0]) / "comparison.html", page)


def _write(path: Path, text: str, mode: int = 0o600) -> Path:
    """Write the whole page or none of it: someone may be looking at the old one."""
    write_whole(path, text.encode(), mode)
    return path
