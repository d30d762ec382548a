"""Files and folders that appear whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import io
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from tarfile import TarFile


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write the whole file or none of it; it gets this mode, whatever the umask is."""
    with whole_file(path, mode) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes its place when all was written: see `write_whole`."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def whole_path(path: Path) -> Iterator[Path]:
    """Give a path beside this one, at which a file or a folder is made that takes its place at the block's end.

    It ends as the path does, as programs tell by that what to write. One maker at a time: what a killed one has left is
    removed first. Where the block makes nothing, nothing changes.
    """
    part = path.with_name(f".part-{path.name}")
    _remove(part)
    try:
        yield part
        if part.exists():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            part.replace(path)
    finally:
        _remove(part)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone, whatever the umask is."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def add_to_tar(archive: TarFile, name: str, data: bytes) -> None:
    """Add a file that is not on a disk."""
    member = archive.tarinfo(name)
    member.size, member.mode = len(data), 0o644
    archive.addfile(member, io.BytesIO(data))
