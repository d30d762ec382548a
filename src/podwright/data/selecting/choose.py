"""Which samples go where: random, in whole groups, or so that each part looks like the whole. Pure; a seed decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
_RESTARTS = 4
_MAX_PROPOSALS = 4000
_CANDIDATES = 32
_COUNT_WEIGHT = 2.0
"""A part that has too many or too few samples is worse than one whose classes are off by as much."""


@dataclass(frozen=True)
class Blocks:
    """What is not torn apart: scenes, or single samples; each with its samples and the pixels of each class in them."""

    samples: Array
    pixels: Array

    @property
    def count(self) -> int:
        """Return how many there are."""
        return len(self.samples)


def distance(pixels: Array, total: Array) -> float | None:
    """Return the total variation between two distributions of pixels; None where either has none."""
    if not pixels.sum() or not total.sum():
        return None
    return float(0.5 * np.abs(pixels / pixels.sum() - total / total.sum()).sum())


def blocks_of(groups: Array, pixels: Array) -> Blocks:
    """Return the units of samples; `groups` has the unit of each sample, from 0."""
    count = int(groups.max()) + 1 if len(groups) else 0
    sums = np.zeros((count, pixels.shape[1]))
    np.add.at(sums, groups, pixels)
    return Blocks(np.bincount(groups, minlength=count).astype(float), sums)


def pick(count: int, size: int, seed: int) -> Array:
    """Return `size` of `count` samples at random, in order."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:size])


def pick_alike(pixels: Array, size: int, seed: int) -> Array:
    """Return `size` samples whose classes are distributed like those of all; each class that is there stays.

    First a sample of every class, the rarest first; then others at random; then others are exchanged while it helps.
    """
    rng = np.random.default_rng(seed)
    chosen = _cover(pixels, size, rng)
    covering = len(chosen)
    others = rng.permutation(np.setdiff1d(np.arange(len(pixels)), chosen))
    order = np.concatenate([np.array(chosen, dtype=np.int64), others])
    if covering == size or size >= len(order):
        return np.sort(order[:size])
    target = pixels.sum(axis=0) / max(pixels.sum(), 1.0)
    sums_of_chosen = pixels[order[:size]].sum(axis=0)
    for _ in range(min(_MAX_PROPOSALS, 40 * size)):
        leaving = int(rng.integers(covering, size))
        coming = rng.integers(size, len(order), _CANDIDATES)
        sums = sums_of_chosen - pixels[order[leaving]] + pixels[order[coming]]
        best = int(np.argmin(_variation(sums, target)))
        if _variation(sums[best][None], target)[0] < _variation(sums_of_chosen[None], target)[0]:
            sums_of_chosen = sums[best]
            other = coming[best]
            order[[leaving, other]] = order[[other, leaving]]
    return np.sort(order[:size])


def _cover(pixels: Array, size: int, rng: np.random.Generator) -> list[int]:
    """Return few samples that hold every class; fewer classes, the commonest missing, where `size` is too small."""
    chosen: list[int] = []
    holders = (pixels > 0).sum(axis=0)
    for index in np.argsort(holders, kind="stable"):
        if len(chosen) == size:
            break
        if holders[index] and not (pixels[chosen, index] > 0).any():
            chosen.append(int(rng.choice(np.flatnonzero(pixels[:, index] > 0))))
    return chosen


def _variation(sums: Array, target: Array) -> Array:
    totals = np.maximum(sums.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(0.5 * np.abs(sums / totals - target).sum(axis=1))


def deal(units: Blocks, shares: Sequence[float], seed: int) -> Array:
    """Return the part of each unit, filled up by number of samples alone; -1 is no part.

    Large units come first, since small ones fill the gaps that they leave.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(units.count)
    order = order[np.argsort(-units.samples[order], kind="stable")]
    missing = np.array([*shares, max(0.0, 1.0 - sum(shares))]) * units.samples.sum()
    parts = np.full(units.count, -1)
    for unit in order:
        number = int(np.argmax(missing))
        missing[number] -= units.samples[unit]
        parts[unit] = number if number < len(shares) else -1
    return parts


def deal_alike(units: Blocks, shares: Sequence[float], seed: int) -> Array:
    """Return the part of each unit, so that all parts have the classes of the whole, rare ones too.

    Blocks are dealt out one by one to where they fit best, then moved and exchanged while it helps; the best of several
    beginnings is taken.
    """
    rng = np.random.default_rng(seed)
    restarts = _RESTARTS if units.count <= 400 else 1
    best: tuple[float, Array] | None = None
    for _ in range(restarts):
        dealing = _Dealing(units, shares)
        dealing.deal(rng)
        dealing.improve(rng)
        if best is None or dealing.cost < best[0]:
            best = dealing.cost, dealing.parts.copy()
    assert best is not None
    parts = best[1]
    parts[parts == len(shares)] = -1
    return parts


class _Dealing:
    """One way to deal units out, which keeps the sums of each part; the last part is what no part gets."""

    def __init__(self, units: Blocks, shares: Sequence[float]) -> None:
        self.units = units
        self.shares = np.array([*shares, max(0.0, 1.0 - sum(shares))])
        self.named = len(shares)
        self.parts = np.full(units.count, -1)
        self.samples = np.zeros(len(self.shares))
        self.pixels = np.zeros((len(self.shares), units.pixels.shape[1]))
        total = units.pixels.sum(axis=0)
        self.target = total / max(total.sum(), 1.0)
        # A class can only be in all parts when there are as many units that hold it.
        self.spread = (units.pixels > 0).sum(axis=0) >= self.named
        self.held = total > 0
        self.cost = 0.0

    def _cost(self) -> float:
        pixels = self.pixels[: self.named]
        off = _variation(pixels, self.target).sum()
        counts = np.abs(self.samples / self.units.samples.sum() - self.shares)[: self.named].sum()
        absent = pixels == 0
        missing = (absent & self.spread).sum() + absent[0][self.held & ~self.spread].sum()
        empty = (self.samples[: self.named] == 0).sum()
        return float(off + _COUNT_WEIGHT * counts + missing / max(self.held.sum(), 1) + empty)

    def _put(self, unit: int, part: int) -> None:
        before = self.parts[unit]
        if before >= 0:
            self.samples[before] -= self.units.samples[unit]
            self.pixels[before] -= self.units.pixels[unit]
        self.parts[unit] = part
        self.samples[part] += self.units.samples[unit]
        self.pixels[part] += self.units.pixels[unit]

    def deal(self, rng: np.random.Generator) -> None:
        """Deal all units out, those that hold the rarest classes first."""
        holders = np.maximum((self.units.pixels > 0).sum(axis=0), 1)
        rarity = np.where(self.units.pixels > 0, 1.0 / holders, 0.0).max(axis=1, initial=0.0)
        order = rng.permutation(self.units.count)
        order = order[np.argsort(-rarity[order], kind="stable")]
        open_parts = np.flatnonzero(self.shares > 1e-9)
        for unit in order:
            costs = []
            for part in open_parts:
                self._put(unit, int(part))
                costs.append(self._cost())
            self._put(unit, int(open_parts[int(np.argmin(costs))]))
        self.cost = self._cost()

    def improve(self, rng: np.random.Generator) -> None:
        """Move a unit, or exchange two, as long as it helps."""
        open_parts = np.flatnonzero(self.shares > 1e-9)
        for _ in range(min(_MAX_PROPOSALS, 40 * self.units.count)):
            unit, other = rng.integers(0, self.units.count, 2)
            before, beside = int(self.parts[unit]), int(self.parts[other])
            swaps = before != beside and rng.random() < 0.5
            if swaps:
                self._put(unit, beside)
                self._put(other, before)
            else:
                self._put(unit, int(rng.choice(open_parts)))
            cost = self._cost()
            if cost < self.cost - 1e-12:
                self.cost = cost
                continue
            self._put(unit, before)
            if swaps:
                self._put(other, beside)
