"""Made showers: what four particles leave in a calorimeter, 16 layers deep and 16 cells across; no file is read.

    electron    a shower that begins at once, narrow
    photon      the same, a little later: it must become a pair first
    pion        begins anywhere, wide and ragged, with a part that stays unseen
    muon        a thin track through all layers

The depth follows the gamma distribution that Longo and Sestili fitted to electromagnetic showers (1975), the width two
exponentials. The numbers are chosen to look right; they are not those of an experiment. A shower is judged by what
physicists look at: its energy, its depth, its width, and how many cells it lights.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

KINDS = ("electron", "photon", "pion", "muon")
SIDE = 16
ACROSS = np.arange(SIDE) - (SIDE - 1) / 2
DEEP = np.arange(SIDE) + 0.5
DIMMEST = 1e-3
"""Energy of a cell below which nothing is read out, as a share of what a shower has."""
BINS = 10


def depth_profile(start: float, shape: float, scale: float) -> np.ndarray:
    """How the energy is shared over the layers: a gamma distribution that begins at `start`."""
    t = np.clip(DEEP - start, 0.0, None) / scale
    profile: np.ndarray = t ** (shape - 1) * np.exp(-t)
    shares: np.ndarray = profile / max(profile.sum(), 1e-9)
    return shares


def spread(middle: float, narrow: float, wide: float, share: float) -> np.ndarray:
    """How a layer's energy lies across: a core and a halo that has this share of it."""
    r = np.abs(ACROSS - middle)
    core, halo = np.exp(-r / narrow), np.exp(-r / wide)
    shares: np.ndarray = (1 - share) * core / core.sum() + share * halo / halo.sum()
    return shares


def track(chance: Generator) -> np.ndarray:
    """What a muon leaves: a little in every layer, along a line."""
    middle, slope, cells = chance.normal(0, 0.7), chance.normal(0, 0.04), np.zeros((SIDE, SIDE))
    for layer in range(SIDE):
        cells[layer] = chance.gamma(6, 0.02 / 6) * spread(middle + slope * layer, 0.25, 1.0, 0.02)
    return cells


def hadronic(chance: Generator) -> np.ndarray:
    """What a pion leaves."""
    energy, start = max(0.2, chance.normal(0.75, 0.12)), min(chance.exponential(3.0), 9.0)
    profile = depth_profile(start, chance.normal(3.0, 0.3), chance.normal(1.7, 0.15))
    layers = np.outer(profile, spread(chance.normal(0, 0.7), 0.9, 3.5, 0.5))
    cells: np.ndarray = energy * layers * chance.gamma(3.0, 1 / 3.0, layers.shape)
    return cells


def electromagnetic(chance: Generator, later: float) -> np.ndarray:
    """What an electron leaves, or so much later a photon."""
    start = chance.exponential(0.3) + later
    profile = depth_profile(start, chance.normal(3.6, 0.25), chance.normal(1.15, 0.06))
    layers = np.outer(profile, spread(chance.normal(0, 0.7), 0.6, 2.0, 0.15))
    cells: np.ndarray = chance.normal(1.0, 0.04) * layers * chance.gamma(20.0, 1 / 20.0, layers.shape)
    return cells


SHOWERS: tuple[Callable[[Generator], np.ndarray], ...] = (
    partial(electromagnetic, later=0.0),
    partial(electromagnetic, later=1.2),
    hadronic,
    track,
)
"""In the order of the kinds."""


def make(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Showers as pictures from -1 to 1, and their kinds, all alike often."""
    chance = np.random.default_rng(seed)
    kinds = np.arange(count) % len(KINDS)
    cells = np.stack([SHOWERS[kind](chance) for kind in kinds])
    return as_pictures(torch.from_numpy(cells).float()), torch.from_numpy(kinds)


def as_pictures(cells: Tensor) -> Tensor:
    """Energies span five powers of ten: their logarithm, from the dimmest cell to a whole shower in one, as -1 to 1."""
    return 1 - 2 * torch.log(cells.clamp(DIMMEST / 10, 1.0)).div(np.log(DIMMEST / 10))[:, None]


def energies_of(pictures: Tensor) -> Tensor:
    """The energy of each cell again; what is too dim to be read out is nothing."""
    cells = torch.exp((1 - pictures[:, 0]) / 2 * float(np.log(DIMMEST / 10)))
    return torch.where(cells < DIMMEST, 0.0, cells)


def features(pictures: Tensor) -> Tensor:
    """Energy, mean depth, width, and lit cells of each shower."""
    cells = energies_of(pictures)
    energy = cells.sum((1, 2))
    whole = energy.clamp(min=1e-6)
    deep, across = torch.from_numpy(DEEP).float(), torch.from_numpy(ACROSS).float()
    depth = (cells.sum(2) * deep).sum(1) / whole
    middle = (cells.sum(1) * across).sum(1) / whole
    width = ((cells.sum(1) * across**2).sum(1) / whole - middle**2).clamp(min=0).sqrt()
    return torch.stack([energy, depth, width, (cells > 0).sum((1, 2)).float()], 1)


def likeness(ours: Tensor, theirs: Tensor) -> float:
    """How much of the two clouds of features lies together, from 0 to 1: the mean overlap of their histograms.

    The bins hold equal shares of the first, so that each feature counts alike whatever its unit.
    """
    shares = torch.linspace(0, 1, BINS + 1)[1:-1]
    overlaps = []
    for own, other in zip(ours.T, theirs.T, strict=True):
        edges = torch.quantile(own, shares)
        overlaps.append(float(torch.minimum(heights(own, edges), heights(other, edges)).sum()))
    return sum(overlaps) / len(overlaps)


def heights(values: Tensor, edges: Tensor) -> Tensor:
    """The share of values in each bin."""
    return torch.bucketize(values.contiguous(), edges).bincount(minlength=BINS) / len(values)
