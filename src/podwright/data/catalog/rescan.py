"""Scans again only the folders in which something changed; all others are taken from the generation there is."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from podwright.data.catalog import schema
from podwright.data.catalog.carry import AS_LAST_TIME, Accept
from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.files import literal, put_rows
from podwright.data.catalog.scan import Scan, Scanned
from podwright.data.catalog.staging import Staging
from podwright.data.catalog.store import Store
from podwright.data.tree.walk import ENTRIES, walk_some

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Folders = dict[bytes, tuple[int, tuple[int, int, int]]]
"""What a generation has of folders, by path: its number; inode and both times."""


def rescan(
    store: Store,
    dataset: str,
    changed: Iterable[bytes] | None = None,
    trees: Iterable[bytes] = (),
    accept: Accept = AS_LAST_TIME,
) -> Scanned:
    """Look again into folders that changed, by their paths below the root, each ending in /, and into whole trees.

    Where nobody says which, it is those whose own times are not what they were. That shows what came, went and was
    renamed; a file that was written over in place leaves its folder as it was.
    """
    started = time.monotonic()
    with store.writing(dataset) as draft:
        with open_dataset(store, dataset) as opened:
            root, layout = opened.root_bytes, opened.layout
            folders = _folders(opened.connection)
        looked_at = set(_touched(root, folders) if changed is None else changed)
        work = _Rescan(store.file(dataset, store.generation(dataset)), root, folders, (looked_at, set(trees)))
        return Scan(store, Path(os.fsdecode(root)), dataset, draft, accept).run(layout, work.fill, started)


def _folders(connection: DuckDBPyConnection) -> Folders:
    query = "SELECT coalesce(raw, encode(path)), id, inode, mtime_ns, ctime_ns FROM directory"
    return {path: (number, (inode, *times)) for path, number, inode, *times in connection.execute(query).fetchall()}


def _touched(root: bytes, folders: Folders) -> Iterable[bytes]:
    for path, (_, facts) in folders.items():
        try:
            status = os.lstat((root + b"/" + path).rstrip(b"/"))
        except OSError:
            yield path
            continue
        if (status.st_ino, status.st_mtime_ns, status.st_ctime_ns) != facts:
            yield path


class _Rescan:
    """Fills a staging with what is in some folders now, and with the old generation for the rest."""

    def __init__(self, old: Path, root: bytes, folders: Folders, news: tuple[set[bytes], set[bytes]]) -> None:
        self._old, self._root, self._folders = old, root, folders
        changed, trees = news
        # A folder that the old generation does not know is met when the one above it is gone through.
        self._changed = changed & folders.keys()
        for path in changed - folders.keys():
            self._changed.add(_known_above(path, folders))
        self._gone = self._below([*trees, *(path for path in folders if self._is_gone(path))])

    def _is_gone(self, path: bytes) -> bool:
        if _parent(path) not in self._changed and path not in self._changed:
            return False
        try:
            # Without the / at its end, which would lead through a link.
            return not stat.S_ISDIR(os.lstat((self._root + b"/" + path).rstrip(b"/")).st_mode)
        except OSError:
            return True

    def _below(self, tops: Sequence[bytes]) -> set[bytes]:
        """Return folders with all that the old generation knows below them."""
        if not tops:
            return set()
        return {path for path in self._folders if path.startswith(tuple(tops))}

    def fill(self, connection: DuckDBPyConnection, staging: Staging) -> None:
        """Go through what changed, then take the rest over."""
        unchanged = frozenset(self._folders.keys() - self._gone)
        rest = sorted(self._changed - self._gone)
        while rest:
            batch = walk_some(self._root, rest, ENTRIES, unchanged)
            staging.take(batch)
            rest = batch.rest
        staging.write()
        again = [self._folders[path][0] for path in self._changed | self._gone]
        connection.execute(f"ATTACH '{literal(self._old)}' AS old (READ_ONLY)")
        put_rows(connection, "CREATE TEMP TABLE gone AS", pa.table({"id": pa.array(again, pa.int64())}))
        for statement in schema.STAGED_AGAIN:
            connection.execute(statement.format(first=staging.folders))
        connection.execute("DROP TABLE gone")
        connection.execute("DETACH old")


def _parent(path: bytes) -> bytes:
    return path[: path.rstrip(b"/").rfind(b"/") + 1]


def _known_above(path: bytes, folders: Folders) -> bytes:
    while path and path not in folders:
        path = _parent(path)
    return path
