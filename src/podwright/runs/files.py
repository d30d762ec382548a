"""Files that appear whole or not at all, and files of a run's own making, which may be anything."""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from tarfile import TarFile

UNTRUSTED_BYTES = 16 << 20
"""The most that is read of a file that a run's program wrote for people to see."""
KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
}


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write the whole file or none of it, whatever happens meanwhile; it gets this mode, whatever the umask is."""
    with whole_file(path, mode) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes its place when all was written: see `write_whole`."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone, whatever the umask is."""
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def kind_of(mode: int) -> str:
    """Return what something is that is no plain file, in words."""
    return KINDS.get(stat.S_IFMT(mode), "something odd")


def read_untrusted(folder: Path, name: str, limit_bytes: int = UNTRUSTED_BYTES) -> bytes:
    """Read a file that a run's program wrote; an OSError says why it is not read."""
    with open_untrusted(folder, name) as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"larger than {limit_bytes >> 20} MiB", name)
    return data


def open_untrusted(folder: Path, name: str) -> BufferedReader:
    """Open a plain file below a folder, by a path that follows no link; neither pipe nor device holds the reader up."""
    *folders, last = Path(name).parts
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=place)
            os.close(place)
            place = inner
        _check_plain(os.lstat(last, dir_fd=place), name)
        # It may have become something else since: the flags keep the reader safe, and what was opened is looked at.
        file = os.open(last, flags | os.O_NONBLOCK, dir_fd=place)
    finally:
        os.close(place)
    try:
        _check_plain(os.fstat(file), name)
    except OSError:
        os.close(file)
        raise
    return os.fdopen(file, "rb")


def _check_plain(status: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"{kind_of(status.st_mode)}, no plain file", name)


def add_to_tar(archive: TarFile, name: str, data: bytes) -> None:
    """Add a file that is not on a disk."""
    member = archive.tarinfo(name)
    member.size, member.mode = len(data), 0o644
    archive.addfile(member, io.BytesIO(data))
