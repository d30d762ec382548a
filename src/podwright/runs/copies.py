"""Copies what a run left: plain files, folders, and links that stay inside the run.

A run's program writes these names. A link that leads out of the run would bring in files of the user's that were never
the run's, and a pipe would hold the copy up for ever.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from podwright.files.untrusted import kind_of, open_untrusted


@dataclass(frozen=True)
class LeftOut:
    """Something of a run that is not copied, by its path in the run, and why."""

    path: str
    why: str

    def as_json(self) -> dict[str, str]:
        """Return the form that `--json` prints."""
        return {"path": self.path, "why": self.why}


def ignore(_: LeftOut) -> None:
    """Take note of nothing."""


@dataclass(frozen=True)
class Copier:
    """Copies below `root`, the run's real folder; what it leaves out goes to `leave_out`."""

    root: Path
    leave_out: Callable[[LeftOut], None] = ignore

    def copy(self, source: Path, target: Path) -> bool:
        """Copy a file, a folder or a link; return whether there is something at the target now."""
        try:
            mode = source.lstat().st_mode
        except OSError as error:
            return self._skip(source, _unreadable(error))
        if stat.S_ISDIR(mode):
            return self._copy_folder(source, target)
        if stat.S_ISLNK(mode):
            return self._copy_link(source, target)
        if stat.S_ISREG(mode):
            return self._copy_file(source, target)
        return self._skip(source, f"{kind_of(mode)}, no plain file")

    def _copy_folder(self, source: Path, target: Path) -> bool:
        try:
            paths = sorted(source.iterdir())
        except OSError as error:
            return self._skip(source, _unreadable(error))
        if target.is_symlink():
            target.unlink()
        target.mkdir(parents=True, exist_ok=True)
        for path in paths:
            self.copy(path, target / path.name)
        return True

    def _copy_link(self, source: Path, target: Path) -> bool:
        """Write the link anew, so that it leads to the copy and not back to the original."""
        end = Path(os.path.realpath(source))
        if not end.is_relative_to(self.root):
            return self._skip(source, "a link that leads out of the run")
        _clear(target)
        target.symlink_to(os.path.relpath(end, source.parent))
        return True

    def _copy_file(self, source: Path, target: Path) -> bool:
        try:
            file = open_untrusted(self.root, source.relative_to(self.root).as_posix())
        except OSError as error:
            return self._skip(source, _unreadable(error))
        with file:
            _clear(target)
            with target.open("wb") as copy:
                shutil.copyfileobj(file, copy)
            status = os.fstat(file.fileno())
        target.chmod(status.st_mode & 0o777)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        return True

    def _skip(self, source: Path, why: str) -> bool:
        name = os.fsencode(source.relative_to(self.root)).decode("utf-8", "backslashreplace")
        self.leave_out(LeftOut(name, why))
        return False


def _clear(target: Path) -> None:
    """Make room for a file: a link or a file of an earlier copy is replaced, not written through."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)


def _unreadable(error: OSError) -> str:
    return f"cannot be read: {(error.strerror or str(error)).lower()}"
