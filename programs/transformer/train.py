"""Trains a transformer on text: GPT (foretell the next token) or BERT (fill in masked ones).

    python programs/transformer/train.py                      a tiny GPT learns the Python reference, on any machine
    python programs/transformer/train.py --model bert         a tiny BERT learns to fill in the words of stories
    torchrun --nproc-per-node 8 programs/transformer/train.py --synthetic --size 1.3B --batch 48 --compile
    podwright run examples/transformer.yaml

GPT's tokens are bytes (text.py says whose), BERT's are words of made stories (stories.py). Synthetic tokens are noise
that stays on the device: they show the speed of the step and teach nothing. With `--weights bf16` the network computes
on bf16 weights, and the optimizer keeps their exact values in fp32.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import stories
import text
from kit.fp8 import use_fp8
from kit.loop import Task, run
from kit.noise import Noise
from kit.optimizers import MasterAdamW
from kit.options import Shared, count_of, option, positive_of, read_settings, switch, whole_of
from kit.rates import warm_then_cosine
from kit.samples import order_of
from kit.sharding import shard
from kit.world import World, add_up
from model import SHAPES, Shape, Transformer
from text import windows

MASKED_SHARE = 0.15
SOURCES = {"gpt": text, "bert": stories}
TINY = {
    "gpt": Shape(4, 128, 128, text.VOCABULARY),
    "bert": Shape(2, 64, stories.LENGTH, stories.VOCABULARY, head=16),
}
"""Networks for the text that is here: 0.8 and 0.1 million weights."""
TARGETS = {"gpt": 0.5, "bert": 0.712}
"""The share of held-out tokens that must be right. BERT's is MLPerf's for masked tokens (0.712, ruleset 0.7.0)."""


@dataclass(frozen=True, kw_only=True)
class Config(Shared):
    """How to train."""

    model: str = option("gpt", str, "gpt foretells the next token, bert fills in masked ones", ("gpt", "bert"))
    epochs: int = option(10, count_of, "passes over the text, at most")
    batch: int = option(32, count_of, "pieces of text per rank and step")
    limit: int = option(0, whole_of, "use this many pieces of the text, and as many to score on; 0: all")
    lr: float = option(3e-3, positive_of, "highest learning rate")
    target: float = option(0.0, float, "ends when this share of held-out tokens is right; 0: gpt 0.5, bert 0.712")
    size: str = option("tiny", str, "of the network; the larger ones are for --synthetic", ("tiny", *SHAPES))
    synthetic: bool = switch("noise instead of text: for speed")
    steps: int = option(100, count_of, "steps of an epoch of synthetic tokens")
    weights: str = option("fp32", str, "format of the weights on the device", ("fp32", "bf16"))
    fp8: bool = switch("products of the blocks' layers in fp8 (a GPU since Hopper)")
    shard: bool = switch("spread weights, gradients and the optimizer's state over all ranks (FSDP2)")


def shape_of(config: Config) -> Shape:
    """The network that was asked for."""
    named = TINY[config.model] if config.size == "tiny" else SHAPES[config.size]
    return replace(named, causal=config.model == "gpt")


def adam(net: nn.Module, config: Config) -> torch.optim.Optimizer:
    """AdamW; matrices decay, what has one dimension does not."""
    matrices = [weight for weight in net.parameters() if weight.ndim > 1]
    others = [weight for weight in net.parameters() if weight.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    if config.weights == "bf16":
        return MasterAdamW(groups, config.lr, (0.9, 0.95))
    return torch.optim.AdamW(groups, lr=config.lr, betas=(0.9, 0.95), fused=True)


class Tokens(Task):
    """What both tasks share: the network, its optimizer, and the rate."""

    quality, steepest = "token_accuracy", 1.0
    net: Transformer

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world, self.size = config, world, shape_of(config)
        self.benchmark = config.model
        self.target = config.target or TARGETS[config.model]
        with world.device:  # the first weights of billions are made in no time there
            self.net = Transformer(self.size)
        if config.weights == "bf16":
            self.net.to(torch.bfloat16)
        if config.fp8:
            use_fp8(self.net.blocks)
        if config.shard:
            shard(self.net, self.net.blocks, world)
        self.optimizer = adam(self.net, config)
        self.batch, self.epochs = config.batch, config.epochs
        self.flops_per_sample = self.size.flops_per_token * self.size.context

    def rate(self, progress: float) -> float:
        """Up, then down to a tenth."""
        return warm_then_cosine(progress, self.config.lr, warm=0.05, lowest=0.1)

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {
            "program": "transformer",
            "model": self.config.model,
            "layers": self.size.layers,
            "width": self.size.width,
        }


class Text(Tokens):
    """Text that is here."""

    def __init__(self, config: Config, world: World) -> None:
        super().__init__(config, world)
        self.text, self.held_out = (part.to(world.device) for part in SOURCES[config.model].read())
        self.length = self.size.context
        self.train_samples = self._pieces(self.text) - 1  # the last one is left to shift the others by
        self.eval_samples = self._pieces(self.held_out)
        self.steps = max(1, self.train_samples // (config.batch * world.size))

    def _pieces(self, whole: Tensor) -> int:
        """How many pieces to take of a text; each needs one token more than its length."""
        pieces = (len(whole) - 1) // self.length
        return min(pieces, self.config.limit or pieces)

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """Pieces that lie end to end: stories as they are, other text cut at other places in each epoch."""
        chance = torch.Generator(self.world.device)
        shift = (epoch * 37) % self.length if self.config.model == "gpt" else 0
        for step, chosen in enumerate(
            order_of(self.train_samples, self.batch, self.world, self.config.seed, epoch, start), start
        ):
            chance.manual_seed(
                (self.config.seed << 32) + (epoch * self.steps + step) * self.world.size + self.world.rank
            )
            yield self._puzzle(self.text, chosen.to(self.world.device) * self.length + shift, chance)

    def _puzzle(self, whole: Tensor, starts: Tensor, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        """What the network sees, and what it has to say; -1: nothing."""
        if self.config.model == "bert":
            return stories.masked(windows(whole, self.length, starts), MASKED_SHARE, chance)
        pieces = windows(whole, self.length + 1, starts)
        return pieces[:, :-1], pieces[:, 1:]

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """The share of held-out tokens that are said right, and the loss, over all ranks."""
        device, chance = self.world.device, torch.Generator(self.world.device).manual_seed(1)
        sums = torch.zeros(3, dtype=torch.float64, device=device)
        each = -(-self.eval_samples // self.world.size)  # as many for every rank: sharded ones wait for each other
        mine = self.world.rank + self.world.size * torch.arange(each, device=device)
        for pieces in torch.split(mine, 64):
            seen, truth = self._puzzle(self.held_out, pieces % self.eval_samples * self.length, chance)
            truth = truth.masked_fill((pieces >= self.eval_samples)[:, None], -1)
            scores = self.net(seen).float()
            asked = truth >= 0
            right = (scores.argmax(-1) == truth) & asked
            lost = nn.functional.cross_entropy(scores.flatten(0, 1), truth.flatten(), ignore_index=-1, reduction="sum")
            sums += torch.stack((right.sum(), asked.sum(), lost)).double()
        right_sum, asked_sum, lost_sum = add_up(sums).tolist()
        return {"token_accuracy": right_sum / asked_sum, "eval_loss": lost_sum / asked_sum}


class Synthetic(Noise, Tokens):
    """Noise instead of text."""

    def __init__(self, config: Config, world: World) -> None:
        super().__init__(config, world)
        wanted = config.batch, self.size.context
        noise = tuple(torch.randint(self.size.vocabulary, wanted, device=world.device) for _ in range(2))
        self.repeat(noise, config.steps, config.batch * world.size)


def main(arguments: Sequence[str]) -> int:
    """Train as the command line says; returns the exit code."""
    config = read_settings(Config, "Train a transformer on text.", arguments)
    if config.shard and config.weights == "bf16":
        raise SystemExit(
            "--shard spreads weights in fp32\n\nhint: leave --weights out; --precision bf16 computes in bf16"
        )
    if config.size != "tiny" and not config.synthetic:
        raise SystemExit(f"--size {config.size} is for --synthetic: the text that is here would be learnt by heart")
    kind: type[Tokens] = Synthetic if config.synthetic else Text
    return run(config, partial(kind, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
