"""Trains a transformer to translate numbers from English into German words (pairs.py).

    python programs/translation/train.py                      on any machine
    torchrun --nproc-per-node 8 programs/translation/train.py --synthetic --width 512 --layers 6 --batch 2048
    podwright run examples/translation.yaml

The score is BLEU, from 0 to 1. Synthetic sentences are noise that stays on the device: they show the speed of the step
and teach nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from bleu import bleu, counts
from kit.loop import Task, run
from kit.noise import Noise
from kit.options import Shared, count_of, option, positive_of, read_settings, switch
from kit.rates import warm_then_cosine
from kit.samples import order_of
from kit.world import World, add_up
from model import Translator
from pairs import END, ENGLISH, GERMAN, PAD, english, german, make

LONGEST = 16
"""Words of a sentence and its marks, at most."""
HELD_OUT = 500


@dataclass(frozen=True, kw_only=True)
class Config(Shared):
    """How to train."""

    epochs: int = option(8, count_of, "passes over the pairs, at most")
    batch: int = option(64, count_of, "pairs per rank and step")
    samples: int = option(3000, count_of, "pairs to make; 500 more are kept to score on")
    lr: float = option(2e-3, positive_of, "highest learning rate")
    width: int = option(64, count_of, "width of the network, a multiple of 4")
    layers: int = option(2, count_of, "of the encoder and of the decoder")
    target: float = option(0.9, positive_of, "ends when BLEU on the held-out pairs has reached this")
    synthetic: bool = switch("noise instead of sentences: for speed")
    steps: int = option(100, count_of, "steps of an epoch of synthetic pairs")


def padded(sentences: Sequence[list[int]]) -> Tensor:
    """Sentences as rows of one length."""
    return torch.tensor([sentence + [PAD] * (LONGEST - len(sentence)) for sentence in sentences])


def words_of(row: list[int]) -> list[int]:
    """The words of a row before the end of its sentence."""
    return row[: row.index(END)] if END in row else row


class Pairs(Task):
    """The task: made pairs, or noise of the same shape."""

    benchmark, quality, steepest = "transformer", "bleu", 1.0
    net: Translator

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world, self.target = config, world, config.target
        train, held_out = make(config.samples, HELD_OUT, seed=1)
        self.read, self.right = self._sentences(train)
        self.held_read, self.held_right = self._sentences(held_out)
        self.net = Translator(len(ENGLISH.words), len(GERMAN.words), LONGEST, config.width, config.layers)
        self.net.to(world.device)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=config.lr, betas=(0.9, 0.98), fused=True)
        self.epochs, self.batch = config.epochs, config.batch
        self.train_samples, self.eval_samples = len(train), len(held_out)
        self.steps = max(1, self.train_samples // (config.batch * world.size))

    def _sentences(self, numbers: list[int]) -> tuple[Tensor, Tensor]:
        ours = padded([ENGLISH.numbers(english(number)) for number in numbers])
        theirs = padded([GERMAN.numbers(german(number)) for number in numbers])
        return ours.to(self.world.device), theirs.to(self.world.device)

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """This rank's share of each step."""
        for chosen in order_of(self.train_samples, self.batch, self.world, self.config.seed, epoch, start):
            index = chosen.to(self.world.device)
            yield self.read[index], self.right[index]

    def rate(self, progress: float) -> float:
        """Up, then down to a tenth."""
        return warm_then_cosine(progress, self.config.lr, warm=0.1, lowest=0.1)

    def score(self) -> dict[str, float]:
        """BLEU of the held-out sentences, and the share that is right word for word, over all ranks."""
        mine = torch.arange(self.world.rank, self.eval_samples, self.world.size, device=self.world.device)
        said = self.net.translate(self.held_read[mine]).tolist()
        rows: list[list[float]] = []
        for ours, theirs in zip(said, self.held_right[mine].tolist(), strict=True):
            spoken, right = words_of(ours), words_of(theirs)
            rows.append([*counts(spoken, right), float(spoken == right)])
        *sums, whole = add_up(torch.tensor(rows, dtype=torch.float64).sum(0)).tolist()
        return {"bleu": bleu(sums), "right": whole / self.eval_samples}

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {"program": "translation", "width": self.config.width, "layers": self.config.layers}


class Synthetic(Noise, Pairs):
    """Noise instead of sentences."""

    def __init__(self, config: Config, world: World) -> None:
        super().__init__(config, world)
        vocabularies = (len(ENGLISH.words), len(GERMAN.words))
        wanted = config.batch, LONGEST
        noise = tuple(torch.randint(END, count, wanted, device=world.device) for count in vocabularies)
        self.repeat(noise, config.steps, config.batch * world.size)


def main(arguments: Sequence[str]) -> int:
    """Train as the command line says; returns the exit code."""
    config = read_settings(Config, "Train a transformer to translate numbers.", arguments)
    kind: type[Pairs] = Synthetic if config.synthetic else Pairs
    return run(config, partial(kind, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
