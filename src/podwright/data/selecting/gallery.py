"""Samples of a dataset to look at: those that a filter chooses, from all over them, as pictures with what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from podwright.data.catalog.dataset import Dataset
from podwright.data.selecting.frames import FramePicture, pictures, spread
from podwright.data.selecting.pool import Pool, read_pool

_MOST_CLASSES = 4


@dataclass(frozen=True)
class GalleryPicture:
    """A sample as the page of a dataset shows it."""

    picture: FramePicture
    holds: Sequence[tuple[str, float]]
    """The classes that take most of its pixels, with their shares."""


@dataclass(frozen=True)
class Gallery:
    """What the page of a dataset shows."""

    dataset: str
    root: str
    layout: str
    generation: int
    where: str | None
    samples: int
    """How many a filter chose; some of them are shown."""
    classes: Sequence[tuple[str, float, float]]
    """Their shares of the pixels of what was chosen and of all that were counted, the largest first."""
    pictures: Sequence[GalleryPicture]


def gallery_of(dataset: Dataset, where: str | None, most: int) -> Gallery:
    """Return the samples that a filter chooses, with pictures of so many."""
    pool = read_pool(dataset, dataset.condition(where), None)
    shown = spread(len(pool.samples), most)
    frames = pictures(dataset.roots, [pool.samples[at] for at in shown])
    cards = [GalleryPicture(frame, list(_holds(pool, at))) for frame, at in zip(frames, shown, strict=True)]
    generation = dataset.store.generation(dataset.name)
    about = dataset.name, dataset.roots.shown, dataset.layout.name, generation, where
    return Gallery(*about, len(pool.samples), list(_classes(pool)), cards)


def _holds(pool: Pool, at: int) -> Iterator[tuple[str, float]]:
    row = pool.pixels[at]
    total = float(row.sum())
    for index in (-row).argsort(kind="stable")[:_MOST_CLASSES]:
        if row[index]:
            yield pool.classes[int(index)], float(row[index]) / total


def _classes(pool: Pool) -> Iterator[tuple[str, float, float]]:
    chosen, whole = pool.pixels.sum(axis=0), pool.total
    for index in (-whole).argsort(kind="stable"):
        if whole[index]:
            share = float(chosen[index]) / max(float(chosen.sum()), 1.0)
            yield pool.classes[int(index)], share, float(whole[index]) / float(whole.sum())
