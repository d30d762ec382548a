"""Makes selections: a pool of samples, what is taken of it, and how it is split."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.store import Store
from podwright.data.launcher import FindRun, StartedRun
from podwright.data.selecting import choose
from podwright.data.selecting.pool import Array, Pool, read_pool
from podwright.data.selecting.ranking import by_confusion, by_uncertainty
from podwright.data.selecting.selections import ALL, Selection, Split, check_free, freeze
from podwright.spec.problems import refuse, short

if TYPE_CHECKING:
    from podwright.data.selecting.pool import SampleSource

_SPLIT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,30}")
SAMPLE = "sample"
"""What `--by` says for: samples may be torn from those beside them."""


@dataclass(frozen=True)
class Choice:
    """What a user asks of a selection."""

    name: str
    where: str | None = None
    size: int | None = None
    split: str | None = None
    folds: int | None = None
    by: str | None = None
    representative: bool = False
    confusion: str | None = None
    """A run: samples of what it confused."""
    classes: str | None = None
    """Of confusion: these two, as `Car,Truck`, and not its worst."""
    uncertainty: str | None = None
    """A run: samples that it was least sure of."""
    seed: int = 0
    no_duplicates: bool = False
    """Of images that are near-duplicates of each other, only the first."""

    @property
    def ranked_by(self) -> str | None:
        """Return the run by which samples are ranked."""
        return self.confusion or self.uncertainty


def make_selection(
    store: Store,
    name: str,
    choice: Choice,
    opening: AbstractContextManager[SampleSource] | None = None,
    find_run: FindRun | None = None,
) -> Selection:
    """Choose samples of a dataset, of the home or as `opening` opens it, and freeze them in the home."""
    run = find_run(choice.ranked_by) if find_run and choice.ranked_by else None
    check_free(store, choice.name)
    _check(choice)
    shares = _shares(choice)
    with opening or open_dataset(store, name) as dataset:
        by = _group_column(dataset, choice, shares)
        pool = read_pool(dataset, dataset.condition(choice.where), by)
        pool, dropped = _unlike(store, dataset, pool) if choice.no_duplicates else (pool, {})
        _check_pool(dataset, pool, choice)
        origin = dataset.origin
    pool, lineage = _taken(pool, choice, run)
    splits = {}
    for split, indices in _dealt(pool, shares, by, choice).items():
        inside = pool.subset(indices)
        pixels = inside.pixels.sum(axis=0)
        distance = choose.distance(pixels, pool.total) if pool.classes else None
        splits[split] = Split(inside.samples, _rounded(distance), tuple(int(count) for count in pixels))
    selection = Selection(
        name=choice.name,
        dataset=name,
        root=dataset.roots.first,
        layout=dataset.layout.kept,
        seed=choice.seed,
        lineage=_lineage(dataset, origin, choice, by) | lineage | dropped | {"incomplete": pool.incomplete},
        splits=splits,
        classes=pool.classes,
        created_at=time.time(),
        further_roots=dataset.roots.labelled,
    )
    freeze(store, selection)
    return selection


def _unlike(store: Store, dataset: SampleSource, pool: Pool) -> tuple[Pool, dict[str, Any]]:
    """Return a pool without near-duplicates of what it has already: none is left that could cross a split."""
    from podwright.data.similar.known import Looks

    likeness = Looks(store, dataset.name, dataset.roots).likeness([sample.image for sample in pool.samples])
    first = [number for number, group in enumerate(likeness.groups) if group in (-1, number)]
    dropped = {"count": len(pool.samples) - len(first), "by": likeness.by}
    return pool.subset(np.array(first, dtype=np.int64)), {"duplicates": dropped}


def _check(choice: Choice) -> None:
    if choice.split and choice.folds:
        raise refuse("cannot be together with --split", hint="folds are splits of equal size", field="--folds")
    if choice.confusion and choice.uncertainty:
        raise refuse("cannot be together with --confusion", hint="give one of them", field="--uncertainty")
    if choice.representative and (choice.confusion or choice.uncertainty) and not (choice.split or choice.folds):
        hint = "samples that a run had trouble with are not like the whole; --representative can split them"
        raise refuse("cannot be together with a ranking", hint=hint, field="--representative")
    if choice.classes and not choice.confusion:
        raise refuse("is only for --confusion", hint="classes are chosen by --where 'Car>0'", field="--classes")


def _shares(choice: Choice) -> dict[str, float]:
    """Return the share of each split by its name."""
    if choice.folds:
        if choice.folds < 2:
            raise refuse("must be 2 or more", field="--folds")
        return {f"fold{number + 1}": 1 / choice.folds for number in range(choice.folds)}
    if not choice.split:
        return {ALL: 1.0}
    shares: dict[str, float] = {}
    for entry in choice.split.split(","):
        name, _, text = entry.strip().partition("=")
        share = _share(text)
        if not _SPLIT_NAME.fullmatch(name) or share is None or name in shares:
            hint = "write it like `--split train=0.8,validation=0.2`, each name once, shares between 0 and 1"
            raise refuse(f'"{short(entry)}" is no split with its share', hint=hint, field="--split")
        shares[name] = share
    if sum(shares.values()) > 1 + 1e-9:
        hint = "what the shares leave of 1 is in no split"
        raise refuse(f"the shares are {sum(shares.values()):g} in all, more than 1", hint=hint, field="--split")
    return shares


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 < share <= 1 else None


def _group_column(dataset: SampleSource, choice: Choice, shares: dict[str, float]) -> str | None:
    """Return the column whose values are not torn apart; a representative split keeps the layout's groups whole."""
    if choice.by == SAMPLE or len(shares) == 1:
        return None
    if choice.by is None:
        return dataset.layout.group if choice.representative else None
    columns = [column.name for column in dataset.layout.columns]
    if choice.by not in columns:
        hint = f"columns of {dataset.name} are {', '.join([*columns, SAMPLE])}"
        raise refuse(f'{dataset.name} has no column "{short(choice.by)}"', hint=hint, field="--by")
    return choice.by


def _check_pool(dataset: SampleSource, pool: Pool, choice: Choice) -> None:
    count = len(pool.samples)
    if not count:
        what = "--where chooses no sample" if choice.where else f"{dataset.name} has no sample"
        hint = f"a sample needs {' and '.join(dataset.layout.needs)}; `podwright data find` shows what a filter chooses"
        raise refuse(what, hint=hint)
    if choice.size is not None and not 0 < choice.size <= count:
        raise refuse(f"there are {count} samples to choose from", hint="give a size from 1 to that", field="--size")
    if (choice.representative or choice.confusion) and not pool.total.any():
        field = "--representative" if choice.representative else "--confusion"
        message = "needs to know what the labels hold, and they are not counted yet"
        raise refuse(message, hint=dataset.how_to_count, field=field)


def _taken(pool: Pool, choice: Choice, run: StartedRun | None) -> tuple[Pool, dict[str, Any]]:
    """Return what is taken of the pool, and how it was ranked where it was."""
    size = choice.size or len(pool.samples)
    if run is not None:
        if choice.confusion:
            ranking = by_confusion(pool, run.id, run.folder.path, choice.classes)
        else:
            ranking = by_uncertainty(pool, run.id, run.folder.path)
        if not len(ranking.indices):
            raise refuse(f"no sample can be ranked by {ranking.lineage['ranked_by']}", hint="widen --where")
        kind = "confusion" if choice.confusion else "uncertainty"
        return pool.subset(np.sort(ranking.indices[:size])), {kind: ranking.lineage}
    if size == len(pool.samples):
        return pool, {}
    if choice.representative:
        return pool.subset(choose.pick_alike(pool.pixels, size, choice.seed)), {}
    return pool.subset(choose.pick(len(pool.samples), size, choice.seed)), {}


def _dealt(pool: Pool, shares: dict[str, float], by: str | None, choice: Choice) -> dict[str, Array]:
    """Return the indices of the samples of each split."""
    everything = np.arange(len(pool.samples))
    if list(shares) == [ALL]:
        return {ALL: everything}
    groups = everything
    if by:
        _, groups = np.unique([sample.group for sample in pool.samples], return_inverse=True)
    units = choose.blocks_of(groups, pool.pixels)
    if units.count < len(shares):
        what = f"{units.count} values of {by}" if by else f"{units.count} samples"
        raise refuse(f"{what} cannot be dealt out to {len(shares)} splits", hint="ask for fewer splits")
    deal = choose.deal_alike if choice.representative else choose.deal
    of_unit = deal(units, list(shares.values()), choice.seed)
    of_sample = of_unit[groups]
    return {name: np.flatnonzero(of_sample == number) for number, name in enumerate(shares)}


def _lineage(dataset: SampleSource, origin: dict[str, Any], choice: Choice, by: str | None) -> dict[str, Any]:
    """Return where a selection comes from: enough to make it again."""
    return {
        "dataset": dataset.name,
        "root": dataset.roots.shown,
        **origin,
        "where": choice.where,
        "size": choice.size,
        "split": choice.split,
        "folds": choice.folds,
        "by": by,
        "representative": choice.representative,
    }


def _rounded(distance: float | None) -> float | None:
    return None if distance is None else round(distance, 6)


@dataclass(frozen=True)
class Difference:
    """How one selection differs from another, in samples; `distance` is between their distributions of pixels."""

    added: int
    removed: int
    kept: int
    distance: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data diff`."""
        return asdict(self)


def difference(before: Selection, after: Selection) -> Difference:
    """Compare two selections by the images in them."""
    first, second = _images(before), _images(after)
    distance = None
    if before.classes and before.classes == after.classes:
        distance = _rounded(choose.distance(_pixels(before), _pixels(after)))
    return Difference(len(second - first), len(first - second), len(first & second), distance)


def _images(selection: Selection) -> set[bytes]:
    return {sample.image.path_bytes for _, sample in selection.rows()}


def _pixels(selection: Selection) -> Array:
    rows: Sequence[tuple[int, ...]] = [split.pixels for split in selection.splits.values()]
    return np.asarray(np.array(rows, dtype=float).sum(axis=0))
