"""Files under names that ranks can write to as well.

A pipe that lies there would hold a pilot up for ever, and a link lead elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import BinaryIO

KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def open_to_add(path: str) -> int:
    """Open a file to be added to, made where there is none, and in place of a pipe or a link of that name.

    Should one come this very moment, the flags keep us safe.
    """
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISLNK(mode):
            os.unlink(path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def open_to_read(path: str) -> BinaryIO:
    """Open a file to be read; an OSError where it is none."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    raise OSError(errno.EINVAL, "it is no plain file", path)


def odd_kind(path: str) -> str:
    """Return what lies at a path that is neither a plain file nor a folder, in words; nothing for those two."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ""
    return KINDS.get(stat.S_IFMT(mode), "")
