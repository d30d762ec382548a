"""Trains a single-shot detector to find shapes and to say which they are (pictures.py).

    python programs/detection/train.py                       on any machine
    torchrun --nproc-per-node 8 programs/detection/train.py --synthetic --compile --side 320 --width 64 --batch 64
    podwright run examples/detection.yaml

The score is the mean average precision at an overlap of one half. Synthetic pictures are noise that stays on the
device: they show the speed of the step and teach nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from boxes import BINS, average_precision, count_right, keep_best
from kit.loop import Task, run
from kit.noise import Noise
from kit.options import Shared, count_of, option, positive_of, read_settings, switch
from kit.rates import warm_then_cosine
from kit.samples import order_of
from kit.world import World, add_up
from model import STRIDES, Detector
from pictures import KINDS, MOST, SIDE, make

EVAL_SHARE = 6
MIN_SURE = 0.05


@dataclass(frozen=True, kw_only=True)
class Config(Shared):
    """How to train."""

    epochs: int = option(10, count_of, "passes over the pictures, at most")
    batch: int = option(32, count_of, "pictures per rank and step")
    samples: int = option(2400, count_of, "pictures to make; a sixth as many are kept to score on")
    lr: float = option(4e-3, positive_of, "highest learning rate")
    width: int = option(16, count_of, "channels of the first stage")
    target: float = option(0.9, positive_of, "ends when the mean average precision has reached this")
    synthetic: bool = switch("noise instead of pictures: for speed")
    side: int = option(320, count_of, "pixels of a side of a synthetic picture")
    steps: int = option(100, count_of, "steps of an epoch of synthetic pictures")


class Shapes(Task):
    """The task: made pictures with their boxes."""

    benchmark, quality, steepest = "ssd", "mean_ap", 10.0
    net: Detector

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world, self.target = config, world, config.target
        self.truth = tuple(tensor.to(world.device) for tensor in make(config.samples, seed=1))
        self.held_out = tuple(tensor.to(world.device) for tensor in make(config.samples // EVAL_SHARE, seed=2))
        self._set_up(SIDE)
        self.train_samples, self.eval_samples = len(self.truth[0]), len(self.held_out[0])
        self.steps = max(1, self.train_samples // (config.batch * world.size))

    def _set_up(self, side: int) -> None:
        config, device = self.config, self.world.device
        self.net = Detector(len(KINDS), side, config.width).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=config.lr, weight_decay=1e-2, fused=True)
        self.epochs, self.batch = config.epochs, config.batch

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """This rank's share of each step."""
        for chosen in order_of(self.train_samples, self.batch, self.world, self.config.seed, epoch, start):
            index = chosen.to(self.world.device)
            yield tuple(tensor[index] for tensor in self.truth)

    def rate(self, progress: float) -> float:
        """Up and down again."""
        return warm_then_cosine(progress, self.config.lr, warm=0.1, lowest=0.02)

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """The mean average precision over the held-out pictures, and that of each kind."""
        pictures, boxes, kinds = self.held_out
        mine = torch.arange(self.world.rank, len(pictures), self.world.size, device=self.world.device)
        counts = torch.zeros(len(KINDS), 2, BINS, dtype=torch.float64)
        for index in torch.split(mine, 128):
            guesses, sure = (tensor.cpu() for tensor in self.net.detect(pictures[index]))
            for row in zip(guesses, sure, boxes[index].cpu(), kinds[index].cpu(), strict=True):
                counts += counts_of(*row)
        add_up(counts)
        kinds = kinds.cpu()
        each = [average_precision(counts[kind], float((kinds == kind).sum())) for kind in range(len(KINDS))]
        named = {f"ap.{name}": value for name, value in zip(KINDS, each, strict=True)}
        return {"mean_ap": sum(each) / len(each), **named}

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {"program": "detection", "width": self.config.width, "kinds": list(KINDS)}


def counts_of(guesses: Tensor, sure: Tensor, boxes: Tensor, kinds: Tensor) -> Tensor:
    """What `count_right` says of each kind in one picture."""
    rows = []
    for kind in range(len(KINDS)):
        likely = sure[:, kind] > MIN_SURE
        own, own_sure = guesses[likely], sure[likely, kind]
        kept = keep_best(own, own_sure)
        rows.append(count_right(own[kept], own_sure[kept], boxes[kinds == kind]))
    return torch.stack(rows)


class Synthetic(Noise, Shapes):
    """Noise instead of pictures."""

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world = config, world
        side = config.side - config.side % STRIDES[-1]
        self._set_up(side)
        noise = torch.randint(256, (config.batch, 3, side, side), dtype=torch.uint8, device=world.device)
        corner = torch.rand(config.batch, MOST, 2, device=world.device) / 2
        boxes = torch.cat([corner, corner + 0.1 + torch.rand_like(corner) / 4], 2)
        kinds = torch.randint(len(KINDS), (config.batch, MOST), device=world.device)
        self.repeat((noise, boxes, kinds), config.steps, config.batch * world.size)


def main(arguments: Sequence[str]) -> int:
    """Train as the command line says; returns the exit code."""
    config = read_settings(Config, "Train a single-shot detector.", arguments)
    kind: type[Shapes] = Synthetic if config.synthetic else Shapes
    return run(config, partial(kind, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
