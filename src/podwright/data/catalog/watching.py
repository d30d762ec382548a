"""Keeps a dataset's catalog up to date: hears what changes and scans that, or all of it where events were lost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.rescan import rescan
from podwright.data.catalog.scan import Scanned, scan
from podwright.data.catalog.store import Store
from podwright.data.tree.watch import Watch


def watch_dataset(
    store: Store, dataset: str, settle_s: float, stop: Callable[[], bool] = lambda: False
) -> Iterator[Scanned]:
    """Yield each scan; the first is of all that changed while nobody watched."""
    with open_dataset(store, dataset) as opened:
        root, layout = opened.root_bytes, opened.layout.name
    watch = Watch(root)
    try:
        # Behind the watches: what changes from here on is heard.
        yield scan(store, Path(os.fsdecode(root)), dataset, layout)
        for changes in watch.changes(settle_s, stop):
            if changes.lost:
                yield scan(store, Path(os.fsdecode(root)), dataset, layout)
            else:
                yield rescan(store, dataset, changes.folders, changes.trees)
    finally:
        watch.close()
