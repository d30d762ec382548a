"""Checksums of files, on demand: each is read once and keeps its SHA-256 until somebody touches it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.files import put_rows
from podwright.data.catalog.schema import PATH_BYTES
from podwright.data.catalog.store import Store
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.tree.reading import AT_ONCE, NotReadError, RemoteReader, is_address

_AT_ONCE = 256
_MISSING = f"""SELECT f.id, {PATH_BYTES}, f.size, f.mtime_ns, f.inode FROM file f JOIN directory d ON d.id = f.dir
    WHERE f.type = 'file' AND f.sha256 IS NULL ORDER BY f.id"""
_File = tuple[int, bytes, int, int, int]
"""Number, path, size, time, and inode or version."""


def add_checksums(
    store: Store, dataset: str, progress: Progress = unheard, only: Container[bytes] | None = None
) -> tuple[int, int]:
    """Read the files that have no checksum; return the generation that has them, and how many were read.

    `only`: of these, by their paths below the root. A file that is not what the scan saw, or cannot be read, stays
    without: the next scan will see it.
    """
    with store.writing(dataset) as draft:
        files: list[_File] = []
        with open_dataset(store, dataset) as opened:
            root = opened.root_bytes
            for row in opened.connection.execute(_MISSING).fetchall():
                if only is None or row[1] in only:
                    files.append(row)
        sums: dict[int, str] = {}
        try:
            for done, (number, digest) in enumerate(_digests(root, files), 1):
                if digest is not None:
                    sums[number] = digest
                progress(Advance("checksums", done, len(files)))
        finally:
            # Whoever is interrupted goes on where he was.
            if sums:
                _keep(store, dataset, draft, sums)
        return store.generation(dataset), len(sums)


def _keep(store: Store, dataset: str, draft: Path, sums: dict[int, str]) -> None:
    table = pa.table({"id": list(sums), "sha256": list(sums.values())})
    with store.amending(dataset, draft) as connection:
        put_rows(connection, "CREATE TEMP TABLE summed AS", table)
        connection.execute("UPDATE file SET sha256 = s.sha256 FROM summed s WHERE s.id = file.id")


def _digests(root: bytes, files: Sequence[_File]) -> Iterator[tuple[int, str | None]]:
    """Yield the checksums in the order of the files; hashing lets go of Python's lock, so threads do."""
    waiting, digest_of = iter(files), partial(_digest, root)
    threads = len(os.sched_getaffinity(0))
    if is_address(root):
        digest_of, threads = partial(_remote_digest, RemoteReader(root, os.environ)), AT_ONCE
    with ThreadPoolExecutor(threads) as pool:
        while portion := list(islice(waiting, _AT_ONCE)):
            digests = pool.map(digest_of, portion)
            yield from zip((file[0] for file in portion), digests, strict=True)


def _remote_digest(reader: RemoteReader, file: _File) -> str | None:
    _, path, size, _, version = file
    try:
        return reader.digest(path, size, version)
    except NotReadError:
        return None


def _digest(root: bytes, file: _File) -> str | None:
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
