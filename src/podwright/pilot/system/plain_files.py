"""Files, read and written in the few ways that a pilot has.

Many lie under names that ranks can write to as well: a pipe there would hold a pilot up for ever, a link lead away.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import AnyStr, BinaryIO, List, Optional

ADDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Neither follows a link nor waits for the other side of a pipe."""
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
    return os.open(path, ADDING, 0o600)


def open_to_read(path: str) -> BinaryIO:
    """Open a file to be read; an OSError where it is none."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return os.fdopen(file, "rb")
    os.close(file)
    raise OSError(errno.EINVAL, "it is no plain file", path)


def read_whole(path: str) -> bytes:
    """Return what is in a file; an OSError where it is none."""
    with open_to_read(path) as file:
        return file.read()


def read_text(path: str, max_letters: int = -1) -> str:
    """Return what stands in a file of the system or of an installation; nothing where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(max_letters)
    except OSError:
        return ""


def names_in(folder: str) -> List[str]:
    """Return the names in a folder; none where it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def write_whole(path: AnyStr, data: bytes, by_way_of: Optional[AnyStr] = None) -> None:
    """Write a file of this user's alone that is never seen by half under its name; it comes `by_way_of` a folder."""
    import tempfile  # takes longer than all else here, and hardly any role needs it

    number, unfinished = tempfile.mkstemp(dir=by_way_of or os.path.dirname(path))
    with os.fdopen(number, "wb") as file:
        file.write(data)
    os.replace(unfinished, path)


def odd_kind(path: str) -> str:
    """Return what lies at a path that is neither a plain file nor a folder, in words; nothing for those two."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return ""
    return KINDS.get(stat.S_IFMT(mode), "")
