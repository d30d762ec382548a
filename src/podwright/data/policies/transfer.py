"""Files that a policy copies, moves and deletes: verified, never over another file, whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from typing import IO

from podwright.pilot.data.sparse import end_file, write_piece

_PART = b".podwright-part"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT)
"""What is no fault of a file, but of the place that it goes to."""


class NotTheSame(OSError):
    """The file is not what the catalog says of it."""


def check_same(path: bytes, size: int, mtime_ns: int) -> os.stat_result:
    """Return the status of a plain file that is still what it was."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise NotTheSame(errno.EINVAL, "is no plain file")
    if (status.st_size, status.st_mtime_ns) != (size, mtime_ns):
        raise NotTheSame(errno.EBUSY, "has changed since it was scanned")
    return status


def digest_of(path: bytes) -> str:
    """Return the SHA-256 of a plain file."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy(source: bytes, target: bytes, size: int, mtime_ns: int) -> str:
    """Copy a file to a place where there is none, or the same one; return its SHA-256.

    The copy has the file's mode and times; it is read again before it takes its place.
    """
    check_same(source, size, mtime_ns)
    os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120 - paths are bytes
    part = target + _PART
    try:
        with os.fdopen(os.open(source, _FLAGS), "rb") as reader, _fresh(part) as writer:
            digest = _pour(reader, writer)
            status = os.fstat(reader.fileno())
        if (status.st_size, status.st_mtime_ns) != (size, mtime_ns):
            raise NotTheSame(errno.EBUSY, "was written while it was copied")
        if digest_of(part) != digest:
            raise OSError(errno.EIO, "the copy is not what was read")
        os.chmod(part, stat.S_IMODE(status.st_mode))  # noqa: PTH101
        os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
        _put(part, target, digest)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)  # noqa: PTH108
    return digest


def _fresh(path: bytes) -> IO[bytes]:
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108 - left by one that was killed
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


def _pour(reader: IO[bytes], writer: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := reader.read(_CHUNK):
        digest.update(chunk)
        write_piece(writer, chunk)
    end_file(writer)
    writer.flush()
    os.fsync(writer.fileno())
    return digest.hexdigest()


def _put(part: bytes, target: bytes, digest: str) -> None:
    try:
        # A link and not a rename: that would replace what is there.
        os.link(part, target, follow_symlinks=False)
    except FileExistsError:
        if not stat.S_ISREG(os.lstat(target).st_mode) or digest_of(target) != digest:
            raise FileExistsError(errno.EEXIST, "there is another file at its place") from None


def move(source: bytes, target: bytes, size: int, mtime_ns: int) -> str:
    """Move a file to a place where there is none: a copy that was verified, then the file goes.

    One that is gone and lies at its place already was moved by somebody who was killed before he could say so.
    """
    if not os.path.lexists(source) and os.path.lexists(target):
        check_same(target, size, mtime_ns)
        return digest_of(target)
    digest = copy(source, target, size, mtime_ns)
    check_same(source, size, mtime_ns)
    os.unlink(source)  # noqa: PTH108
    return digest


def delete(path: bytes, size: int, mtime_ns: int) -> None:
    """Delete a file that is still what it was."""
    check_same(path, size, mtime_ns)
    os.unlink(path)  # noqa: PTH108


def reason(error: OSError) -> str:
    """Return why a file could not be dealt with, in words."""
    return (error.strerror or str(error)).lower()
