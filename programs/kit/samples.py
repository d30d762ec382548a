"""The order of samples: a function of seed and epoch, so that a training that stopped goes on in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from .loader import Loader
from .world import World


def order_of(count: int, batch: int, world: World, seed: int, epoch: int, start: int) -> Iterator[Tensor]:
    """Indices of this rank's samples in each step from `start` on; what fills no step of all ranks is left out."""
    whole = torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
    wide = batch * world.size
    for step in range(start, max(1, count // wide)):
        yield whole[step * wide + world.rank * batch : step * wide + (world.rank + 1) * batch]


class InMemory(Dataset[Any]):
    """Samples that are tensors already, on whatever device: a batch of them is one look-up for each tensor."""

    def __init__(self, *tensors: Tensor) -> None:
        self._tensors = tensors

    def __len__(self) -> int:
        return len(self._tensors[0])

    def __getitems__(self, numbers: list[int]) -> tuple[Tensor, ...]:
        """The batch; PyTorch asks for it by this name."""
        index = torch.tensor(numbers, device=self._tensors[0].device)
        return tuple(tensor[index] for tensor in self._tensors)


class Keys(Dataset[Any]):
    """The keys of samples, each with its draw: what a loader gives to those who decode by themselves."""

    draws = True

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, key: tuple[int, int]) -> tuple[int, int]:
        return key


def as_it_is(batch: Any) -> Any:
    """What a loader is to make of a batch that is one already."""
    return batch


def loader_of(samples: Any, batch: int, world: World, seed: int, **options: Any) -> Loader:
    """A training's loader over whole batches: a smaller one would be compiled for itself. Few samples come again."""
    tail = "drop" if len(samples) >= batch * world.size else "pad"
    return Loader(samples, batch, seed=seed, tail=tail, **options).among(world.rank, world.size)


def from_step(loader: Loader, epoch: int, start: int) -> Iterator[Any]:
    """The batches of an epoch from step `start` on."""
    taken = min(start * loader.batch_size * loader.place.world, len(loader.samples))
    loader.load_state_dict({**loader.state_dict(), "epoch": epoch, "taken": taken})
    return iter(loader)
