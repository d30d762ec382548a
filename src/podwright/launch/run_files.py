"""The files of a run's folder, as others may look at them: listed a folder at a time, opened by paths without links."""

from __future__ import annotations

import os
import stat
from dataclasses import asdict, dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from podwright.files.untrusted import open_untrusted
from podwright.spec.problems import Refusal, refuse, short

if TYPE_CHECKING:
    from podwright.launch.run import Run

MAX_ENTRIES = 1000
SHOWN = frozenset(
    [
        *("results", "checkpoints", "record", "spec", "job"),
        *("run.json", "record.json", "client.jsonl", "engine.jsonl", "metrics.parquet", "series.parquet"),
        *("pilot.log", "slurm.log", "report.html", "comparison.html"),
    ]
)
"""What of a run's folder is shown; all else, above all its token, is nobody's business."""


@dataclass(frozen=True)
class RunFile:
    """A file or a folder of a run."""

    name: str
    path: str
    is_folder: bool
    bytes: int
    modified_at: float


@dataclass(frozen=True)
class RunFiles:
    """What is in a folder of a run; `left_out` entries had no room."""

    path: str
    entries: tuple[RunFile, ...]
    left_out: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return it as an API has it."""
        return {"path": self.path, "files": [asdict(entry) for entry in self.entries], "left_out": self.left_out}


def files_of(run: Run, path: str = "") -> RunFiles:
    """List a folder of a run; links and what is neither file nor folder are left out."""
    run.folder.refuse_stray()
    inner = _checked(path)
    opened = _open_folder(run.folder.path.resolve(), inner, path)
    try:
        with os.scandir(opened) as listed:
            names = sorted(entry.name for entry in listed)
        if not inner.parts:
            names = [name for name in names if name in SHOWN]
        entries = [entry for name in names[:MAX_ENTRIES] if (entry := _entry(opened, inner, name)) is not None]
    finally:
        os.close(opened)
    return RunFiles(path, tuple(entries), max(0, len(names) - MAX_ENTRIES))


def open_file(run: Run, path: str) -> BufferedReader:
    """Open a file of a run to read it; one that is not shown is not there."""
    run.folder.refuse_stray()
    inner = _checked(path)
    try:
        return open_untrusted(run.folder.path.resolve(), str(inner))
    except (OSError, ValueError):
        raise _missing(path) from None


def _checked(path: str) -> PurePosixPath:
    inner = PurePosixPath(path)
    is_plain = not inner.is_absolute() and ".." not in inner.parts and "\0" not in path
    if not is_plain or (inner.parts and inner.parts[0] not in SHOWN):
        raise _missing(path)
    return inner


def _missing(path: str) -> Refusal:
    return refuse(f"there is no {short(path)!r} in this run", field="path", exit_code=1)


def _open_folder(above: Path, inner: PurePosixPath, path: str) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(above, flags)
    except OSError:
        raise _missing(path) from None
    for part in inner.parts:
        try:
            below = os.open(part, flags, dir_fd=opened)
        except OSError:
            raise _missing(path) from None
        finally:
            os.close(opened)
        opened = below
    return opened


def _entry(folder: int, inner: PurePosixPath, name: str) -> RunFile | None:
    try:
        status = os.lstat(name, dir_fd=folder)
    except OSError:
        return None
    is_folder = stat.S_ISDIR(status.st_mode)
    if not is_folder and not stat.S_ISREG(status.st_mode):
        return None
    shown = name.encode("utf-8", "replace").decode("utf-8", "replace")
    return RunFile(shown, str(inner / shown), is_folder, status.st_size, round(status.st_mtime, 3))
