"""Checksums of files, on demand: each is read once and keeps its SHA-256 until somebody touches it."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

import pyarrow as pa

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.files import put_rows
from podwright.data.catalog.schema import PATH_BYTES
from podwright.data.catalog.store import Store
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.tree.digests import FileToRead, digests

_MISSING = f"""SELECT f.id, {PATH_BYTES}, f.size, f.mtime_ns, f.inode FROM file f JOIN directory d ON d.id = f.dir
    WHERE f.type = 'file' AND f.sha256 IS NULL ORDER BY f.id"""


def add_checksums(
    store: Store, dataset: str, progress: Progress = unheard, only: Container[bytes] | None = None
) -> tuple[int, int]:
    """Read the files that have no checksum; return the generation that has them, and how many were read.

    `only`: of these, by their paths below the root. A file that is not what the scan saw, or cannot be read, stays
    without: the next scan will see it.
    """
    with store.writing(dataset) as draft:
        files: list[FileToRead] = []
        with open_dataset(store, dataset) as opened:
            roots = opened.roots
            for row in opened.connection.execute(_MISSING).fetchall():
                if only is None or row[1] in only:
                    files.append(row)
        sums: dict[int, str] = {}
        try:
            for done, (number, digest) in enumerate(digests(roots, files), 1):
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
