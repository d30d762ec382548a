"""What a lab's user may see: where a folder on the way is closed to others, only what a lab needs shines through.

A Python under /root, or a checkout in a folder of mode 0700, cannot be reached by an ordinary user. Inside the lab
such a folder is covered by an empty one that anybody may enter, and the few that are needed are bound into it.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import podwright
from podwright.lab.user import LabUser

MayEnter = Callable[[Path], bool]


class Shown(NamedTuple):
    """What is to be seen through a veil."""

    path: Path
    is_folder: bool


def needed_folders() -> list[Path]:
    """Return what a job needs of the Python that runs this: environment, installation, and the package's checkout."""
    package = Path(podwright.__file__).resolve().parent
    checkout = package.parents[1]
    source = checkout if (checkout / "pyproject.toml").is_file() else package.parent
    return [Path(sys.prefix), Path(sys.base_prefix), *_hops(Path(sys.executable)), source]


def _hops(executable: Path) -> list[Path]:
    """Return the installations that the environment's link to its Python leads through, one link after the other."""
    installations: list[Path] = []
    for _ in range(10):
        if not executable.is_symlink():
            break
        executable = executable.parent / executable.readlink()
        installations.append(Path(os.path.normpath(executable)).parent.parent)
    return installations


def may_enter(user: LabUser) -> MayEnter:
    """Return the test whether the user may pass through a folder, by owner, group and mode."""

    def test(folder: Path) -> bool:
        try:
            status = folder.stat()
        except OSError:
            return False
        if status.st_uid == user.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == user.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)

    return test


def veils(needed: Iterable[Path], enters: MayEnter, always: Iterable[Path] = ()) -> dict[Path, list[Shown]]:
    """Return the folders to cover, each with what is to be seen through it; `always` ones are covered in any case."""
    covers: dict[Path, list[Shown]] = {folder: [] for folder in always}
    for path in outermost(_opened(needed, enters)):
        closed = next((folder for folder in _above(path) if folder in covers or not enters(folder)), None)
        if closed is not None:
            covers.setdefault(closed, []).append(Shown(path, path.is_dir()))
    return covers


def _opened(needed: Iterable[Path], enters: MayEnter) -> Iterable[Path]:
    """Return the paths, and instead of a folder that is closed itself all that lies in it."""
    for path in needed:
        if path.is_dir() and not enters(path):
            yield from path.iterdir()
        elif path.exists():
            yield path


def outermost(paths: Iterable[Path]) -> list[Path]:
    """Drop what lies inside another of them, which is seen with that one."""
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not any(path.is_relative_to(other) for other in kept):
            kept.append(path)
    return kept


def _above(path: Path) -> list[Path]:
    return list(path.parents)[-2::-1]
