"""The SHA-256 of many files of a dataset, from whichever root they are of; what is not as it was seen has none."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from podwright.data.tree.reading import AT_ONCE, NotReadError, RemoteReader
from podwright.data.tree.roots import Roots, is_address

_PORTION = 256
FileToRead = tuple[int, bytes, int, int, int]
"""Number, path, size, time, and inode or version."""


def digests(roots: Roots, files: Sequence[FileToRead]) -> Iterator[tuple[int, str | None]]:
    """Yield the checksums in the order of the files; hashing lets go of Python's lock, so threads do."""
    waiting = iter(files)
    remote = {root: RemoteReader(root, os.environ) for _, root in roots if is_address(root)}
    threads = AT_ONCE if remote else len(os.sched_getaffinity(0))

    def digest_of(file: FileToRead) -> str | None:
        root, below = roots.place(file[1])
        placed = (file[0], below, *file[2:])
        return _remote_digest(remote[root], placed) if root in remote else _digest(root, placed)

    with ThreadPoolExecutor(threads) as pool:
        while portion := list(islice(waiting, _PORTION)):
            digests = pool.map(digest_of, portion)
            yield from zip((file[0] for file in portion), digests, strict=True)


def _remote_digest(reader: RemoteReader, file: FileToRead) -> str | None:
    _, path, size, mtime_ns, version = file
    try:
        return reader.digest(path, size, mtime_ns, version)
    except NotReadError:
        return None


def _digest(root: bytes, file: FileToRead) -> str | None:
    _, path, size, mtime_ns, _ = file
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(root + b"/" + path, flags), "rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            after = os.fstat(opened.fileno())
    except OSError:
        return None
    # Written while it was read, or since the scan: this would be the checksum of neither.
    if (after.st_size, after.st_mtime_ns) != (size, mtime_ns):
        return None
    return digest
