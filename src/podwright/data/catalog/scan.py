"""Scans a tree into a new generation of a dataset; a tree that is as it was leaves the old one."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.data.catalog import schema
from podwright.data.catalog.carry import AS_LAST_TIME, Accept, Carried, OldGeneration, note_renames
from podwright.data.catalog.files import META, meta_of
from podwright.data.catalog.staging import Staging
from podwright.data.catalog.store import Store, check_name
from podwright.data.progress import Advance, Progress, unheard
from podwright.data.query import bitmaps
from podwright.data.tree.known_layouts import known_layout, layout_named
from podwright.data.tree.layouts import PLAIN, Layout, layouts
from podwright.data.tree.paths import shown
from podwright.data.tree.remote import check_address, walk_address
from podwright.data.tree.roots import Roots, check_clash, is_address, roots_of_meta
from podwright.data.tree.walk import Batch, labelled_batch, top_names, walk
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from podwright.data.clickhouse.publish import Published

_ENOUGH = 20_000
"""So many files tell which layout a tree has."""
MAX_NAMED = 100
"""Folders that could not be read are counted all, and so many of them are named."""


@dataclass(frozen=True)
class Scanned:
    """What a scan found."""

    dataset: str
    root: str
    roots: Roots
    layout: str
    files: int
    directories: int
    size_bytes: int
    changed: int
    generation: int
    unread: tuple[tuple[str, str], ...]
    """Folders that could not be read, and why."""
    took_s: float
    renamed: int = 0
    """How many of those that changed are known under another path now."""
    other_device: bool = False
    """The root lies on another device than last time."""
    summed: int | None = None
    """How many files were read for their checksums; None where nobody asked."""
    published: Published | None = None
    """Where it went beside the home."""

    @property
    def facts(self) -> dict[str, Any]:
        """Return what the history of a dataset has of the scan."""
        return {"files": self.files, "changed": self.changed}

    @property
    def named_unread(self) -> Sequence[tuple[str, str]]:
        """Return the folders that are named of those that could not be read."""
        return self.unread[:MAX_NAMED]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data scan`."""
        published = {"published": self.published.as_json()} if self.published else {}
        return {
            "dataset": self.dataset,
            "root": self.root,
            "layout": self.layout,
            "files": self.files,
            "directories": self.directories,
            "bytes": self.size_bytes,
            "changed": self.changed,
            "renamed": self.renamed,
            "not_read": len(self.unread),
            "roots": [shown(root) for _, root in self.roots],
            "labels": [label for label, _ in self.roots],
            "generation": self.generation,
            "unread": [{"path": path, "why": why} for path, why in self.named_unread],
            "summed": self.summed,
            "took_s": round(self.took_s, 3),
            **published,
        }


def scan(
    store: Store,
    root: Path | str | Roots,
    dataset: str,
    layout: str | None = None,
    progress: Progress = unheard,
    accept: Accept = AS_LAST_TIME,
) -> Scanned:
    """Scan the tree below a folder or an address under a name, or those of several roots."""
    started = time.monotonic()
    roots = root if isinstance(root, Roots) else Roots(root_of(root))
    if roots.labelled and store.shared:
        raise refuse("a catalog for many holds datasets of one root", hint="unset PODWRIGHT_CATALOG", field="--label")
    if check_name(dataset) in store.selection_names():
        raise refuse(f"{dataset} is the name of a selection", hint="give the dataset another name", field="--name")
    given_layout = layout_named(layout) if layout else None
    with store.writing(dataset) as draft:
        batches = walk_roots(roots)

        def fill(connection: DuckDBPyConnection, staging: Staging) -> None:
            files = 0
            for batch in batches:
                files += len(batch.files)
                progress(Advance("scan", files))
                staging.take(batch)

        return Scan(store, roots, dataset, draft, accept).run(given_layout, fill, started)


def walk_roots(roots: Roots) -> Iterator[Batch]:
    """Return all that lies in the roots in batches, the paths of further ones behind their labels.

    The walk of one root begins with this call.
    """
    return _walk_labelled(roots) if roots.labelled else _walk_root(roots.first)


def _walk_root(root: bytes) -> Iterator[Batch]:
    return walk_address(os.fsdecode(root)) if is_address(root) else walk(root, len(os.sched_getaffinity(0)))


def _walk_labelled(roots: Roots) -> Iterator[Batch]:
    for batch in _walk_root(roots.first):
        check_clash(roots, top_names(batch))
        yield batch
    for label, root in roots.labelled:
        for batch in _walk_root(root):
            yield labelled_batch(batch, label)


def root_of(root: Path | str) -> bytes:
    """Return the folder or the address that a person means, or refuse it."""
    if isinstance(root, str) and "://" in root:
        return os.fsencode(check_address(root))
    return os.fsencode(_root(Path(root)))


def _root(root: Path) -> Path:
    if not root.exists():
        raise refuse("there is no such folder", hint="give the folder that the dataset lies in", file=str(root))
    if not root.is_dir():
        raise refuse("is a file, not a folder", hint="give the folder that the dataset lies in", file=str(root))
    return root.resolve()


Fill = Callable[["DuckDBPyConnection", Staging], None]


class Scan:
    """One scan, from what fills the staging to the published generation."""

    def __init__(self, store: Store, roots: Roots, dataset: str, draft: Path, accept: Accept) -> None:
        self.store, self.roots, self.dataset, self.draft, self.accept = store, roots, dataset, draft, accept
        self.before = store.generation(dataset)
        self.is_other_device = self.has_more_roots = False

    def run(self, given_layout: Layout | None, fill: Fill, started: float) -> Scanned:
        """Stage, sort, carry over what is known, and publish where something changed."""
        # Rows come from many folders at once: what was staged is sorted into the file that stays, and thrown away.
        with self.store.building(self.draft) as connection:
            staging = Staging(connection, self.draft / "staging.duckdb")
            fill(connection, staging)
            staging.finish()
            layout = given_layout or self._written_before() or _recognised(connection)
            build_tables(connection, layout, self.roots.labels)
            staging.close()
            carried = self._carry(connection, layout)
            scanned = self._scanned(connection, layout, carried, staging.unread)
            is_new = scanned.generation > self.before
            if is_new:
                self._write_meta(connection, scanned, layout)
                bitmaps.build(connection, layout, len(class_names(connection)))
        if is_new:
            note_renames(self.store.path / self.dataset, carried.renamed)
            self.store.publish(self.dataset, self.draft, scanned.facts)
        return replace(scanned, took_s=time.monotonic() - started)

    def _written_before(self) -> Layout | None:
        """Return the layout that a user wrote for this dataset: no look at its paths would find that again."""
        if not self.before or self.accept.other_root:
            return None
        with self.store.connect(self.dataset) as opened:
            kept = meta_of(opened.connection).get("layout", "")
        layout = known_layout(kept)
        return layout if layout is not None and layout.written else None

    def _carry(self, connection: DuckDBPyConnection, layout: Layout) -> Carried:
        """Take over what the old generation knows of files that are still there, and return what changed."""
        files = int(_first(connection, "SELECT count(*) FROM file"))
        if not self.before:
            return Carried(files)
        path = self.store.file(self.dataset, self.before)
        old = OldGeneration(path, self.dataset, self.roots, self.accept)
        old.check(connection)
        try:
            carried = Carried(max(files, 1))
            if old.fits:
                carried = old.compare(connection)
                self.has_more_roots = roots_of_meta(old.meta) != self.roots
                self.is_other_device = old.meta.get("device", self._device) != self._device
                if old.meta.get("layout") != layout.kept:
                    carried = replace(carried, changed=max(carried.changed, files))
            if self._is_new(carried.changed):
                old.carry(connection, layout.kept)
                old.carry_tags(connection, self.store.tag_journal(self.dataset), carried)
            return carried
        finally:
            connection.execute("DETACH DATABASE IF EXISTS old")

    @property
    def _device(self) -> str:
        try:
            return str(os.stat(self.roots.first).st_dev)  # noqa: PTH116 - bytes
        except OSError:  # an address has none
            return ""

    def _is_new(self, changed: int) -> bool:
        """Say whether there is anything to publish: also what others were given by an earlier version is made again."""
        is_other = self.accept.moved or self.has_more_roots
        return bool(changed) or is_other or not self.before or not self.store.is_shared_as_now(self.dataset)

    def _scanned(
        self, connection: DuckDBPyConnection, layout: Layout, carried: Carried, unread: list[tuple[bytes, str]]
    ) -> Scanned:
        row = connection.execute("SELECT count(*), coalesce(sum(size), 0)::BIGINT FROM file").fetchone()
        files, size_bytes = row or (0, 0)
        return Scanned(
            dataset=self.dataset,
            root=shown(self.roots.first),
            roots=self.roots,
            layout=layout.name,
            files=files,
            directories=int(_first(connection, "SELECT count(*) FROM directory")),
            size_bytes=size_bytes,
            changed=carried.changed,
            generation=self.before + self._is_new(carried.changed),
            unread=tuple((shown(path), why) for path, why in unread),
            took_s=0.0,
            renamed=len(carried.renamed),
            other_device=self.is_other_device,
        )

    def _write_meta(self, connection: DuckDBPyConnection, scanned: Scanned, layout: Layout) -> None:
        values = {
            "format": str(schema.FORMAT),
            "dataset": scanned.dataset,
            "root": scanned.root,
            "root_bytes": self.roots.first.hex(),
            "device": self._device,
            "layout": layout.kept,
            "scanned_at": str(time.time()),
            "unread": str(len(scanned.unread)),
        }
        if self.roots.labelled:
            values["roots"] = json.dumps(self.roots.kept()["roots"])
        connection.execute(META)
        # At once: each statement is a transaction, which waits for the disk.
        rows = ", ".join(["(?, ?)"] * len(values))
        connection.execute(f"INSERT INTO meta VALUES {rows}", list(chain.from_iterable(values.items())))


def build_tables(connection: DuckDBPyConnection, layout: Layout, labels: Sequence[str] = ()) -> None:
    """Make the tables of a generation out of what is staged."""
    for statement in schema.build_statements(layout, labels):
        connection.execute(statement)
    for statement in schema.number_statements(_first(connection, "SELECT count(*) FROM file")):
        connection.execute(statement)


def _recognised(connection: DuckDBPyConnection) -> Layout:
    """Return the first layout that matches enough files; those behind it are not asked for."""
    files = int(_first(connection, "SELECT count(*) FROM staged_file"))
    for layout in layouts().values():
        # Of some layouts one file is enough, which must not be missed.
        every = max(1, files // _ENOUGH) if layout.least_share else 1
        if layout.mark and _first(connection, schema.share_query(every), [layout.mark]) > layout.least_share:
            return layout
    return PLAIN


def class_names(connection: DuckDBPyConnection) -> list[str]:
    """Return the classes whose pixels are counted, in their order."""
    return [name for (name,) in connection.execute("SELECT name FROM class ORDER BY place").fetchall()]


def _first(connection: DuckDBPyConnection, query: str, values: Sequence[object] = ()) -> Any:
    # All of them: a result that was not fetched to its end keeps the connection from anything else.
    [row] = connection.execute(query, list(values)).fetchall()
    return row[0]
