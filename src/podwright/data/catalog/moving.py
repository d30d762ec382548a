"""Datasets that lie elsewhere now: what is known stays once names and sizes of a sample agree."""

from __future__ import annotations

import os
from pathlib import Path

from podwright.data.catalog.carry import Accept
from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.scan import Scanned, root_of, scan
from podwright.data.catalog.store import Store
from podwright.data.progress import Progress
from podwright.data.tree.paths import shown
from podwright.spec.problems import refuse


def move(store: Store, dataset: str, old: str, new: str, progress: Progress) -> Scanned:
    """Scan a dataset of which one root lies elsewhere now; no file is moved."""
    with open_dataset(store, dataset) as opened:
        roots, layout = opened.roots, opened.layout.kept
    old_places = [os.fsencode(old.rstrip("/")), os.fsencode(Path(old).resolve())]
    moved = roots.moved(old_places, root_of(new))
    if moved is None:
        first = shown(roots.first)
        raise refuse(
            f"{dataset} lies in {roots.shown}", hint=f"podwright data move {dataset} {first} {new}", field="OLD"
        )
    return scan(store, moved, dataset, layout, progress, Accept(moved=True))
