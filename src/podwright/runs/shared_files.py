"""Files that runs share, stored once under the digest of their content.

A run's program is the user's own and can write them all the same. So they are checked before every use, made anew where
they differ from their name, and a run gets a copy: what it does to that is no other run's affair.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from contextlib import suppress
from io import BufferedIOBase
from pathlib import Path

from podwright.files.untrusted import open_untrusted, read_untrusted
from podwright.files.whole import whole_file, write_whole

COPY_BYTES = 4 << 20
"""Of a stored file that every run gets a copy of, whatever the file system can do."""
PIECE_BYTES = 1 << 20
UNUSED_S = 3600.0
FICLONE = 0x40049409
"""Linux's request to share the blocks of a file until one of both is written."""


def keep_file(folder: Path, content: BufferedIOBase, name: str) -> Path:
    """Return the stored file with this content; one that is missing or differs is written."""
    import hashlib  # where one is stored or compared, not in commands that only read

    content.seek(0)
    digest = hashlib.file_digest(content, "sha256").hexdigest()
    path = folder / f"{digest}.{name}"
    if digest_of(path) == digest:
        os.utime(path)  # in use: not to be cleared away
        return path
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    content.seek(0)
    with whole_file(path, mode=0o400) as file:
        shutil.copyfileobj(content, file, PIECE_BYTES)
    return path


def place(source: Path, target: Path) -> None:
    """Give a run its own copy of a stored file.

    A large one shares its blocks with the store. Where the file system cannot do that it is linked, and could be
    written through the run: the pilot checks its digest before it is unpacked.
    """
    if source.stat().st_size <= COPY_BYTES:
        write_whole(target, _checked(source), mode=0o400)
    elif not _clone(source, target):
        _link(source, target)


def clear_unused(folder: Path) -> None:
    """Remove stored files that no run has a link to and none was made with lately."""
    for path in folder.iterdir():
        with suppress(OSError):  # another client was faster, or it is no file
            if path.lstat().st_nlink == 1 and time.time() - path.lstat().st_mtime > UNUSED_S:
                path.unlink()


def digest_of(path: Path) -> str | None:
    """Return the digest of a stored file; None where there is no plain file of that name."""
    import hashlib

    try:
        with open_untrusted(path.parent, path.name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _checked(path: Path) -> bytes:
    import hashlib

    data = read_untrusted(path.parent, path.name)
    if hashlib.sha256(data).hexdigest() != path.name.partition(".")[0]:
        raise OSError(errno.EIO, f"{path.name} was changed while it was used")
    return data


def _clone(source: Path, target: Path) -> bool:
    """Copy a file by sharing its blocks; return whether the file system can."""
    with source.open("rb") as stored, os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), FICLONE, stored.fileno())
        except OSError:
            target.unlink()
            return False
    return True


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # not every file system has hard links, and each has a limit of them
        shutil.copyfile(source, target)
        target.chmod(0o400)
