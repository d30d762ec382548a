"""Files of a run's own making, which may be anything."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

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
    above = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for inner_name in folders:
            inner = os.open(inner_name, flags | os.O_DIRECTORY, dir_fd=above)
            os.close(above)
            above = inner
        _check_plain(os.lstat(last, dir_fd=above), name)
        # It may have become something else since: the flags keep the reader safe, and what was opened is looked at.
        file = os.open(last, flags | os.O_NONBLOCK, dir_fd=above)
    finally:
        os.close(above)
    try:
        _check_plain(os.fstat(file), name)
    except OSError:
        os.close(file)
        raise
    return os.fdopen(file, "rb")


def _check_plain(status: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"{kind_of(status.st_mode)}, no plain file", name)
