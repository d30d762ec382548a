"""What is asked of a catalog, where it is more than a name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from podwright.data.catalog.carry import AS_LAST_TIME, Accept


@dataclass(frozen=True)
class FurtherRoots:
    """Roots of a dataset beside its first, and the label that the paths of each begin with."""

    roots: tuple[Path | str, ...] = ()
    labels: tuple[str, ...] = ()


NO_FURTHER = FurtherRoots()


@dataclass(frozen=True)
class ScanRequest:
    """A tree, or what lies behind an address, that is scanned under a name."""

    root: Path | str
    dataset: str
    layout: str | None = None
    """None: recognised by the paths."""
    checksums: bool = False
    quick: bool = False
    """Look only into folders that changed."""
    catalog: str | None = None
    """Publish it there too: a pod whose file names a catalog, or clickhouse://..."""
    everything: bool = False
    """Publish also what not everybody may read."""
    accept: Accept = AS_LAST_TIME
    """What is right although it would lose what is known: an emptied root, or another tree under the name."""
    further: FurtherRoots = NO_FURTHER


@dataclass(frozen=True)
class FindRequest:
    """Which files of a dataset are asked for."""

    dataset: str
    where: str | None = None
    limit: int | None = None
    sizes: bool = True
    """Add up the bytes of all files that fit, which takes longer than to count them."""
    catalog: str | None = None
    sort: str | None = None
    """A column, the least first; with a dash before it the greatest."""


@dataclass(frozen=True)
class StatsRequest:
    """Labels to be counted, here or as a run on nodes of a target, and a file for the counts of each image."""

    dataset: str
    per_image: Path | None = None
    target: str | None = None
    nodes: int = 1
    sets: Sequence[str] = ()
    """Changes of the run's workload, as in `podwright run --set`."""
    catalog: str | None = None


@dataclass(frozen=True)
class ShowRequest:
    """A dataset, or a selection and what of it: one split, all files of its samples, the runs that were given it."""

    name: str
    split: str | None = None
    all_files: bool = False
    runs: bool = False
    catalog: str | None = None
