"""Checksums of files, on demand: each is read once and keeps its SHA-256 until somebody touches it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pyarrow as pa

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.files import FILE
from podwright.data.catalog.store import Store
from podwright.data.tree.paths import path_bytes

_AT_ONCE = 256
_MISSING = """SELECT f.id, d.raw, f.raw, d.path, f.name, f.size, f.mtime_ns FROM file f JOIN directory d ON d.id = f.dir
    WHERE f.type = 'file' AND f.sha256 IS NULL ORDER BY f.id"""
_File = tuple[int, bytes, int, int]


def add_checksums(
    store: Store,
    dataset: str,
    progress: Callable[[int, int], None] | None = None,
    only: Container[bytes] | None = None,
) -> tuple[int, int]:
    """Read the files that have no checksum; return the generation that has them, and how many were read.

    `only`: of these, by their paths below the root. A file that is not what the scan saw, or cannot be read, stays
    without: the next scan will see it.
    """
    with store.writing(dataset) as part:
        with open_dataset(store, dataset) as opened:
            files: list[_File] = []
            for number, folder_raw, name_raw, folder, name, size, mtime_ns in opened.connection.execute(
                _MISSING
            ).fetchall():
                raw = path_bytes(folder_raw, name_raw, folder, name) or (folder + name).encode()
                if only is not None and raw not in only:
                    continue
                files.append((number, opened.root_bytes + b"/" + raw, size, mtime_ns))
        sums = {}
        for done, (number, digest) in enumerate(_digests(files), 1):
            if digest is not None:
                sums[number] = digest
            if progress is not None:
                progress(done, len(files))
        if not sums:
            return store.generation(dataset), 0
        shutil.copyfile(store.file(dataset, store.generation(dataset)), part / FILE)
        with store.building(part) as connection:
            connection.register("summed", pa.table({"id": list(sums), "sha256": list(sums.values())}))
            connection.execute("UPDATE file SET sha256 = s.sha256 FROM summed s WHERE s.id = file.id")
            connection.unregister("summed")
        return store.publish(dataset, part), len(sums)


def _digests(files: Sequence[_File]) -> Iterator[tuple[int, str | None]]:
    """Yield the checksums in the order of the files; hashing lets go of Python's lock, so threads do."""
    waiting = iter(files)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        while portion := list(islice(waiting, _AT_ONCE)):
            digests = pool.map(_digest, portion)
            yield from zip((file[0] for file in portion), digests, strict=True)


def _digest(file: _File) -> str | None:
    _, path, size, mtime_ns = file
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags), "rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
            after = os.fstat(opened.fileno())
    except OSError:
        return None
    # Written while it was read, or since the scan: this would be the checksum of neither.
    if (after.st_size, after.st_mtime_ns) != (size, mtime_ns):
        return None
    return digest
