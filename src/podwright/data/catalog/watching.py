"""Scans what changes as it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.rescan import rescan
from podwright.data.catalog.scan import Scanned, scan
from podwright.data.catalog.store import Store
from podwright.data.tree.watch import Watch
from podwright.spec.problems import refuse


def watch(store: Store, dataset: str, settle_s: float, stop: Callable[[], bool]) -> Iterator[Scanned]:
    """Yield each scan; the first is of what changed while nobody watched. Where events were lost, all is scanned.

    Of several roots the folders are heard; what lies behind an address is looked at by scans of all.
    """
    with open_dataset(store, dataset) as opened:
        roots, layout = opened.roots, opened.layout.kept
    if not roots.folders:
        message = f"{dataset} lies in {roots.shown}, and only folders can be watched"
        raise refuse(message, hint=f"scan it now and then: podwright data scan ... --name {dataset}")
    watching = Watch(roots)
    try:
        # Behind the watches: what changes from here on is heard.
        yield scan(store, roots, dataset, layout)
        for changes in watching.changes(settle_s, stop):
            if changes.lost:
                yield scan(store, roots, dataset, layout)
            else:
                yield rescan(store, dataset, changes.folders, changes.trees)
    finally:
        watching.close()
