"""Trains ResNet-50 v1.5, or a small one of the same make, to name what a picture shows.

    python programs/resnet/train.py                          a small one learns digits, on any machine
    torchrun --nproc-per-node 8 programs/resnet/train.py --synthetic --compile --batch 512     ResNet-50's speed on GPUs
    torchrun --nproc-per-node 8 programs/resnet/train.py --data FOLDER --compile --batch 256   ResNet-50 on pictures
    podwright run examples/resnet.yaml

FOLDER has a folder of JPEGs for each class (photos.py). The digits are made when the training starts (digits.py).
Synthetic pictures are noise that stays on the device: they show the speed of the step and teach nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import photos
from digits import CLASSES, make
from kit.decoding import Decoders
from kit.loader import Loader
from kit.loop import Task, run
from kit.noise import Noise
from kit.options import Shared, count_of, option, positive_of, read_settings, switch
from kit.rates import warm_then_cosine
from kit.samples import InMemory, Keys, as_it_is, from_step, loader_of
from kit.world import World, add_up
from model import STAGES, ResNet

SMALL = ((16, 1, 2), (32, 1, 2), (64, 1, 2))
"""Stages of the network for digits: 0.1 million parameters."""
GFLOP_FORWARD = 8.18
"""Operations of ResNet-50 on one picture of 224 x 224; a training step does three times as many."""
EVAL_SHARE = 5
SMALLEST = 64
"""Pixels of a side: of less ResNet-50 leaves nothing."""


@dataclass(frozen=True, kw_only=True)
class Config(Shared):
    """How to train."""

    epochs: int = option(6, count_of, "passes over the pictures, at most")
    batch: int = option(32, count_of, "pictures per rank and step")
    samples: int = option(4000, count_of, "digits to make; a fifth as many are kept to score on")
    lr: float = option(
        0.4, positive_of, "highest learning rate, for 256 pictures per step over all ranks; scaled with it"
    )
    target: float = option(0.95, positive_of, "ends when this share of the held-out pictures is named right")
    data: Path | None = field(default=None, metadata={"type": Path, "help": "folder of JPEGs, a folder for each class"})
    side: int = option(224, count_of, "pixels of a picture of --data; below 64 the small network looks at them")
    synthetic: bool = switch("ResNet-50 on noise of 224 x 224: for speed")
    steps: int = option(200, count_of, "steps of an epoch of synthetic pictures")


class Named(nn.Module):
    """The network with its loss."""

    def __init__(self, net: ResNet) -> None:
        super().__init__()
        self.net = net

    def forward(self, pictures: Tensor, truth: Tensor) -> Tensor:
        scores = self.net(centred(pictures))
        return functional.cross_entropy(scores.float(), truth, label_smoothing=0.1)


def centred(pictures: Tensor) -> Tensor:
    """Bytes to numbers around 0, in the memory order convolutions like."""
    return pictures.to(torch.float32, memory_format=torch.channels_last).sub(115).div(64)


class Digits(Task):
    """The task: made digits and a small network."""

    benchmark, quality = "resnet", "accuracy"
    net: Named

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world, self.target = config, world, config.target
        self.pictures, self.truth = (tensor.to(world.device) for tensor in make(config.samples, seed=1))
        self.held_out, self.held_truth = (tensor.to(world.device) for tensor in make(config.samples // EVAL_SHARE, 2))
        self.net = Named(ResNet(CLASSES, SMALL, small=True)).to(world.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = sgd(self.net)
        self.epochs, self.batch = config.epochs, config.batch
        self.train_samples, self.eval_samples = len(self.truth), len(self.held_truth)
        self.loader = loader_of(
            InMemory(self.pictures, self.truth), config.batch, world, config.seed, collate_fn=as_it_is
        )
        self.steps = self.loader.steps

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """This rank's share of each step."""
        return from_step(self.loader, epoch, start)

    def rate(self, progress: float) -> float:
        """Up and down again, in proportion to the pictures of a step."""
        return warm_then_cosine(progress, self.config.lr * self.batch * self.world.size / 256, warm=0.15)

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """The share of held-out pictures that are named right."""
        right = torch.zeros((), dtype=torch.int64, device=self.world.device)
        mine = torch.arange(self.world.rank, self.eval_samples, self.world.size, device=self.world.device)
        for index in torch.split(mine, 256):
            right += (self.net.net(centred(self.held_out[index])).argmax(1) == self.held_truth[index]).sum()
        return {"accuracy": float(add_up(right)) / self.eval_samples}

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {"program": "resnet", "stages": [list(stage) for stage in SMALL]}


class Pictures(Task):
    """The task: JPEGs of a folder."""

    benchmark, quality = "resnet", "accuracy"
    net: Named

    def __init__(self, config: Config, world: World) -> None:
        torch.backends.cudnn.benchmark = True
        self.config, self.world, self.target = config, world, config.target
        self.train_set, self.score_set, self.classes = photos.read(str(config.data), config.side)
        small = config.side < SMALLEST
        self.stages = SMALL if small else STAGES
        network = ResNet(len(self.classes), self.stages, small=small)
        self.net = Named(network).to(world.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = sgd(self.net)
        self.flops_per_sample = 0.0 if small else 3 * GFLOP_FORWARD * 1e9 * (config.side / 224) ** 2
        self.epochs, self.batch = config.epochs, config.batch
        self.train_samples, self.eval_samples = len(self.train_set), len(self.score_set)
        keys = Keys(self.train_samples)
        self.loader = loader_of(keys, config.batch, world, config.seed, collate_fn=as_it_is)
        self.decoders = Decoders(self.train_set.write, config.batch, (config.side, config.side, 3), world.device)
        self.steps = self.loader.steps

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """This rank's share of each step."""
        for pixels, truth in self.decoders.batches(from_step(self.loader, epoch, start)):
            yield pixels.permute(0, 3, 1, 2), truth

    def rate(self, progress: float) -> float:
        """Up and down again, in proportion to the pictures of a step."""
        return warm_then_cosine(progress, self.config.lr * self.batch * self.world.size / 256, warm=0.15)

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """The share of held-out pictures that are named right."""
        right = torch.zeros((), dtype=torch.int64, device=self.world.device)
        loader = Loader(self.score_set, self.batch, shuffle=False, tail="uneven")
        for pixels, truth in loader.among(self.world.rank, self.world.size).to(self.world.device):
            right += (self.net.net(centred(pixels.permute(0, 3, 1, 2))).argmax(1) == truth).sum()
        return {"accuracy": float(add_up(right)) / self.eval_samples}

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {"program": "resnet", "stages": [list(stage) for stage in self.stages], "classes": self.classes}


class Synthetic(Noise):
    """The task: ResNet-50 on noise."""

    benchmark, quality = "resnet", "accuracy"
    flops_per_sample = 3 * GFLOP_FORWARD * 1e9

    def __init__(self, config: Config, world: World) -> None:
        torch.backends.cudnn.benchmark = True
        self.config, self.world = config, world
        self.net = Named(ResNet(1000)).to(world.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = sgd(self.net)
        self.epochs, self.batch = config.epochs, config.batch
        noise = torch.randint(256, (config.batch, 3, 224, 224), dtype=torch.uint8, device=world.device)
        truth = torch.randint(1000, (config.batch,), device=world.device)
        self.repeat((noise.to(memory_format=torch.channels_last), truth), config.steps, config.batch * world.size)

    def rate(self, progress: float) -> float:
        """Small: there is nothing to learn."""
        return 1e-3

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {"program": "resnet", "stages": [list(stage) for stage in STAGES]}


def sgd(net: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum; what has one dimension, biases and normalisation, does not decay."""
    weights = [weight for weight in net.parameters() if weight.ndim > 1]
    others = [weight for weight in net.parameters() if weight.ndim == 1]
    groups = [{"params": weights, "weight_decay": 5e-5}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=1e-3, momentum=0.9, nesterov=True, fused=True)


def main(arguments: Sequence[str]) -> int:
    """Train as the command line says; returns the exit code."""
    config = read_settings(Config, "Train a ResNet to name what a picture shows.", arguments)
    kind: type[Digits] | type[Pictures] | type[Synthetic] = Pictures if config.data else Digits
    if config.synthetic:
        kind = Synthetic
    return run(config, partial(kind, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
