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
from podwright.data.catalog.dataset import Dataset, open_dataset
from podwright.data.catalog.files import literal, put_rows
from podwright.data.catalog.scan import Scan, Scanned, scan
from podwright.data.catalog.staging import Staging
from podwright.data.catalog.store import Store
from podwright.data.query.conditions import EVERYTHING
from podwright.data.tree.roots import Roots, check_clash, is_address
from podwright.data.tree.walk import ENTRIES, labelled_batch, top_names, walk_some

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
    with open_dataset(store, dataset) as opened:
        roots = opened.roots
    if changed is None and roots.has_address:  # which has no folders whose times could be asked for
        return scan(store, roots, dataset, accept=accept)
    with store.writing(dataset) as draft:
        with open_dataset(store, dataset) as opened:
            roots, layout = opened.roots, opened.layout
            folders = _folders(opened.connection)
            looked_at = set(_touched(roots, folders) if changed is None else changed)
            if not (looked_at or set(trees)) and store.is_shared_as_now(dataset):
                return _as_it_was(opened, started)
        work = _Rescan(store.file(dataset, store.generation(dataset)), roots, folders, (looked_at, set(trees)))
        return Scan(store, roots, dataset, draft, accept).run(layout, work.fill, started)


def _as_it_was(opened: Dataset, started: float) -> Scanned:
    """Return what a scan would that finds no folder touched: what is in them is not gone through."""
    files, size_bytes = opened.count(EVERYTHING)
    (directories,) = opened.connection.execute("SELECT count(*) FROM directory").fetchall()[0]
    return Scanned(
        dataset=opened.name,
        root=opened.root,
        roots=opened.roots,
        layout=opened.layout.name,
        files=files,
        directories=directories,
        size_bytes=size_bytes,
        changed=0,
        generation=opened.store.generation(opened.name),
        unread=(),
        took_s=time.monotonic() - started,
    )


def _folders(connection: DuckDBPyConnection) -> Folders:
    query = "SELECT coalesce(raw, encode(path)), id, inode, mtime_ns, ctime_ns FROM directory"
    return {path: (number, (inode, *times)) for path, number, inode, *times in connection.execute(query).fetchall()}


def _touched(roots: Roots, folders: Folders) -> Iterable[bytes]:
    for path, (_, facts) in folders.items():
        try:
            status = os.lstat(roots.whole(path).rstrip(b"/"))
        except OSError:
            yield path
            continue
        if (status.st_ino, status.st_mtime_ns, status.st_ctime_ns) != facts:
            yield path


class _Rescan:
    """Fills a staging with what is in some folders now, and with the old generation for the rest."""

    def __init__(self, old: Path, roots: Roots, folders: Folders, news: tuple[set[bytes], set[bytes]]) -> None:
        self._old, self._roots, self._folders = old, roots, folders
        self._tops = {f"{label}/".encode() for label in roots.labels}
        changed, trees = news
        # A folder that the old generation does not know is met when the one above it is gone through.
        self._changed = changed & folders.keys()
        for path in changed - folders.keys():
            self._changed.add(self._known_above(path))
        self._gone = self._below([*trees, *(path for path in folders if self._is_gone(path))])

    def _is_gone(self, path: bytes) -> bool:
        root, below = self._roots.place(path)
        if is_address(root) or (self._parent(path) not in self._changed and path not in self._changed):
            return False
        try:
            # Without the / at its end, which would lead through a link.
            return not stat.S_ISDIR(os.lstat((root + b"/" + below).rstrip(b"/")).st_mode)
        except OSError:
            return True

    def _below(self, tops: Sequence[bytes]) -> set[bytes]:
        """Return folders with all that the old generation knows below them."""
        if not tops:
            return set()
        return {path for path in self._folders if path.startswith(tuple(tops))}

    def fill(self, connection: DuckDBPyConnection, staging: Staging) -> None:
        """Go through what changed, then take the rest over."""
        unchanged, changed = self._below_roots(self._folders.keys() - self._gone), self._changed - self._gone
        for (label, root), rest in self._below_roots(changed).items():
            while rest:
                batch = walk_some(root, sorted(rest), ENTRIES, unchanged[label, root])
                rest = frozenset(batch.rest)
                if label:
                    batch = labelled_batch(batch, label)
                else:
                    check_clash(self._roots, top_names(batch))
                staging.take(batch)
        staging.write()
        again = [self._folders[path][0] for path in self._changed | self._gone]
        connection.execute(f"ATTACH '{literal(self._old)}' AS old (READ_ONLY)")
        put_rows(connection, "CREATE TEMP TABLE gone AS", pa.table({"id": pa.array(again, pa.int64())}))
        for statement in schema.STAGED_AGAIN:
            connection.execute(statement.format(first=staging.folders))
        connection.execute("DROP TABLE gone")
        connection.execute("DETACH old")

    def _below_roots(self, paths: Iterable[bytes]) -> dict[tuple[str, bytes], frozenset[bytes]]:
        """Return paths by the label and the place of their root, as they are below that."""
        by_root: dict[bytes, set[bytes]] = {root: set() for _, root in self._roots}
        for path in paths:
            root, below = self._roots.place(path)
            by_root[root].add(below)
        return {(label, root): frozenset(by_root[root]) for label, root in self._roots}

    def _parent(self, path: bytes) -> bytes:
        """Return the folder that a folder lies in; the top of a further root lies in none of them."""
        return path if path in self._tops else path[: path.rstrip(b"/").rfind(b"/") + 1]

    def _known_above(self, path: bytes) -> bytes:
        while path not in self._folders and self._parent(path) != path:
            path = self._parent(path)
        return path
