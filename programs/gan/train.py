"""Trains a conditional GAN of BigGAN's make to simulate showers of particles in a calorimeter (showers.py).

    python programs/gan/train.py                             on any machine
    torchrun --nproc-per-node 8 programs/gan/train.py --synthetic --side 128 --width 64 --batch 64     for speed on GPUs
    podwright run examples/gan.yaml

The score is how far the features of simulated showers lie as those of real ones do. Synthetic pictures are noise that
stays on the device: they show the speed of the step and teach nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kit.loop import Task, run
from kit.noise import Noise
from kit.options import Shared, count_of, option, positive_of, read_settings, switch
from kit.rates import warm_then_cosine
from kit.samples import order_of
from kit.world import World, share
from model import NOISE, Rivals
from showers import KINDS, SIDE, features, likeness, make

HELD_OUT = 2000
COLOURS = 3
"""Of synthetic pictures; a shower has one."""


@dataclass(frozen=True, kw_only=True)
class Config(Shared):
    """How to train."""

    epochs: int = option(12, count_of, "passes over the showers, at most")
    batch: int = option(32, count_of, "showers per rank and step")
    samples: int = option(6400, count_of, "showers to make; 2000 more are kept to score on")
    lr: float = option(2e-3, positive_of, "learning rate of the judge")
    slower: float = option(0.5, positive_of, "the maker's learning rate, as a share of the judge's")
    width: int = option(8, count_of, "channels at the full side")
    target: float = option(0.65, positive_of, "ends when the likeness to real showers has reached this")
    synthetic: bool = switch("noise instead of showers: for speed")
    side: int = option(128, count_of, "pixels of a side of a synthetic picture, a power of 2")
    steps: int = option(100, count_of, "steps of an epoch of synthetic pictures")


class Showers(Task):
    """The task: made showers."""

    benchmark, quality = "gan", "likeness"
    net: Rivals

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world, self.target = config, world, config.target
        self.truth = tuple(tensor.to(world.device) for tensor in make(config.samples, seed=1))
        self.held_out, self.held_kinds = make(HELD_OUT, seed=2)
        self._set_up(SIDE, colours=1)
        self.train_samples, self.eval_samples = config.samples, HELD_OUT
        self.steps = max(1, config.samples // (config.batch * world.size))

    def _set_up(self, side: int, colours: int) -> None:
        config = self.config
        self.net = Rivals(len(KINDS), side, config.width, colours).to(self.world.device)
        maker: dict[str, Any] = {"params": list(self.net.maker.parameters()), "scale": config.slower}
        groups = [maker, {"params": list(self.net.judge.parameters())}]
        self.optimizer = torch.optim.Adam(groups, lr=config.lr, betas=(0.0, 0.99), fused=True)
        self.optimizer.register_step_post_hook(lambda *_: self.net.follow())
        self.epochs, self.batch = config.epochs, config.batch

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """This rank's share of each step."""
        for chosen in order_of(self.train_samples, self.batch, self.world, self.config.seed, epoch, start):
            index = chosen.to(self.world.device)
            yield tuple(tensor[index] for tensor in self.truth)

    def rate(self, progress: float) -> float:
        """Up at once, then down to a tenth."""
        return warm_then_cosine(progress, self.config.lr, warm=0.02, lowest=0.1)

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """How like the held-out showers those of each kind are; the leader says, and all believe it."""
        device = self.world.device
        noise = torch.randn(HELD_OUT, NOISE, generator=torch.Generator().manual_seed(0)).to(device)
        pieces = zip(torch.split(noise, 500), torch.split(self.held_kinds.to(device), 500), strict=True)
        drawn = torch.cat([self.net.steady(*piece) for piece in pieces]).float().cpu()
        values: dict[str, float] = share(likenesses(self.held_out, drawn, self.held_kinds))
        return values

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {"program": "gan", "width": self.config.width, "kinds": list(KINDS)}


def likenesses(real: Tensor, drawn: Tensor, kinds: Tensor) -> dict[str, float]:
    """The likeness of each kind, and their mean."""
    ours, theirs = features(real), features(drawn)
    each = {name: likeness(ours[kinds == kind], theirs[kinds == kind]) for kind, name in enumerate(KINDS)}
    named = {f"likeness.{name}": value for name, value in each.items()}
    return {"likeness": sum(each.values()) / len(each), **named}


class Synthetic(Noise, Showers):
    """Noise instead of showers."""

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world = config, world
        self._set_up(config.side, COLOURS)
        noise = torch.rand(config.batch, COLOURS, config.side, config.side, device=world.device) * 2 - 1
        kinds = torch.randint(len(KINDS), (config.batch,), device=world.device)
        self.repeat((noise, kinds), config.steps, config.batch * world.size)


def main(arguments: Sequence[str]) -> int:
    """Train as the command line says; returns the exit code."""
    config = read_settings(Config, "Train a GAN to simulate showers.", arguments)
    kind: type[Showers] = Synthetic if config.synthetic else Showers
    return run(config, partial(kind, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
