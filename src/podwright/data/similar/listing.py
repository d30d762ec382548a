"""The groups of near-duplicates of a dataset, or of a selection with the splits that a group lies in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.store import Store
from podwright.data.progress import Progress, unheard
from podwright.data.selecting.pool import SampleFile, read_pool
from podwright.data.selecting.selections import Selection
from podwright.data.similar.known import Looks


@dataclass(frozen=True)
class SimilarGroup:
    """Images that are near-duplicates; `splits` of a selection that they lie in."""

    size: int
    paths: tuple[str, ...]
    splits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Similar:
    """All groups of two images and more, the largest first."""

    images: int
    by: str
    unknown: int
    """Images that are none, or have no vector."""
    groups: tuple[SimilarGroup, ...]

    @property
    def crossing(self) -> int:
        """Return how many groups lie in more than one split: what a model is tested on, it has nearly seen."""
        return sum(len(group.splits) > 1 for group in self.groups)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data similar`."""
        return {**asdict(self), "crossing": self.crossing}


def similar_in_dataset(
    store: Store, dataset: str, distance: float | None = None, progress: Progress = unheard
) -> Similar:
    """Return the near-duplicates among the images of a dataset's samples."""
    with open_dataset(store, dataset) as opened:
        pool = read_pool(opened, opened.condition(None), None)
        looks = Looks(store, dataset, opened.roots)
    images = [sample.image for sample in pool.samples]
    return _listed(looks, images, [""] * len(images), distance, progress)


def similar_in_selection(
    store: Store, selection: Selection, distance: float | None = None, progress: Progress = unheard
) -> Similar:
    """Return the near-duplicates of a selection, with the splits that each group lies in."""
    rows = list(selection.rows())
    looks = Looks(store, selection.dataset, selection.roots)
    return _listed(looks, [sample.image for _, sample in rows], [split for split, _ in rows], distance, progress)


def _listed(
    looks: Looks, images: Sequence[SampleFile], splits: Sequence[str], distance: float | None, progress: Progress
) -> Similar:
    likeness = looks.likeness(images, distance, progress)
    members: dict[int, list[int]] = {}
    for number, group in enumerate(likeness.groups):
        if group >= 0:
            members.setdefault(group, []).append(number)
    groups = []
    for numbers in members.values():
        if len(numbers) > 1:
            inside = dict.fromkeys(splits[number] for number in numbers if splits[number])
            groups.append(SimilarGroup(len(numbers), tuple(images[number].path for number in numbers), tuple(inside)))
    groups.sort(key=lambda group: -group.size)
    return Similar(len(images), likeness.by, likeness.groups.count(-1), tuple(groups))
