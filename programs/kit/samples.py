"""The order of samples: a function of seed and epoch, so that a training that stopped goes on in it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from .world import World


def order_of(count: int, batch: int, world: World, seed: int, epoch: int, start: int) -> Iterator[Tensor]:
    """Indices of this rank's samples in each step from `start` on; what fills no step of all ranks is left out."""
    whole = torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + epoch))
    wide = batch * world.size
    for step in range(start, max(1, count // wide)):
        yield whole[step * wide + world.rank * batch : step * wide + (world.rank + 1) * batch]
