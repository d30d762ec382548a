"""Whether a language model learns the same with bf16 weights (exact values kept by the optimizer) as with fp32 ones.

    python3 benchmarks/gpu_curve.py [--size 124M] [--steps 200] [--json OUT]        where the GPU is
    python3 benchmarks/gpu_curve.py --fp8 --steps 500                               fp8 products beside bf16, two seeds
    python3 benchmarks/gpu_curve.py --fp8 --steps 500 --size 6.7B --batch 4 --lr 1.2e-4     the largest that fits

Both arms see the same text in the same order, from the same first weights, at the rate of the program. Their losses are
told step by step, and as the mean of the last tenth.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import torch

from gpu_step import gpu_facts
from measure import RESULTS, ROOT, machine, say, start

ARMS = {
    "fp32 weights": ("--weights", "fp32", "--precision", "bf16"),
    "bf16 weights": ("--weights", "bf16", "--precision", "fp32"),
}
FP8_ARMS = {
    "bf16": ARMS["bf16 weights"],
    "bf16, other seed": (*ARMS["bf16 weights"], "--seed", "1"),
    "fp8": (*ARMS["bf16 weights"], "--fp8"),
}
"""Two seeds show what chance makes of a loss."""


@dataclasses.dataclass(frozen=True)
class Length:
    """What all arms have alike."""

    size: str
    steps: int
    batch: int
    lr: float
    device: str


def losses_of(arm: tuple[str, ...], length: Length) -> list[float]:
    """Losses of the steps of one arm; it leaves the GPU's memory to the next."""
    losses = _train(arm, length)
    torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return losses


def _train(arm: tuple[str, ...], length: Length) -> list[float]:
    train, loop, world = (importlib.import_module(name) for name in ("train", "kit.loop", "kit.world"))
    tell = importlib.import_module("kit.tell")
    given = ["--compile", "--batch", str(length.batch), "--lr", str(length.lr), "--device", length.device, *arm]
    config = dataclasses.replace(train.read_settings(train.Config, "", given), size=length.size)
    rank = world.enter(config.device)
    torch.manual_seed(config.seed)
    task = train.Text(config, rank)
    task.epochs = -(-length.steps // task.steps)
    training = loop.Loop(config, rank, tell.Teller(False, 1.0), task)
    losses: list[torch.Tensor] = []
    while len(losses) < length.steps:
        for batch in task.batches(training.place.epoch, 0):
            losses.append(training.train_step(batch))
            training.place.step += 1
        training.place = loop.Place(training.place.epoch + 1)
    return torch.stack(losses[: length.steps]).float().tolist()


def main() -> int:
    """Train both arms and write their curves."""
    given = argparse.ArgumentParser(description="The loss with bf16 weights beside that with fp32 weights.")
    given.add_argument("--size", default="124M", help="of the network (default: %(default)s)")
    given.add_argument("--steps", type=int, default=200, help="of each arm (default: %(default)s)")
    given.add_argument("--batch", type=int, default=16, help="of a step (default: %(default)s)")
    given.add_argument("--lr", type=float, default=6e-4, help="highest learning rate (default: %(default)s)")
    given.add_argument("--arms", help="some of them alone, by name: bf16,fp8")
    given.add_argument("--device", default="cuda")
    given.add_argument("--json", type=Path, default=RESULTS / "gpu_curve.json")
    given.add_argument("--fp8", action="store_true", help="fp8 products beside bf16")
    options = given.parse_args()
    arms = FP8_ARMS if options.fp8 else ARMS
    sys.path.insert(0, str(ROOT / "programs" / "transformer"))
    length = Length(options.size, options.steps, options.batch, options.lr, options.device)
    names = options.arms.split(",") if options.arms else list(arms)
    curves = {name: losses_of(arms[name], length) for name in names}
    last = max(1, options.steps // 10)
    ends = {name: statistics.fmean(curve[-last:]) for name, curve in curves.items()}
    document: dict[str, Any] = {"size": options.size, "last_tenth": ends, "losses": curves}
    options.json.write_text(
        json.dumps({"machine": {**machine(), **gpu_facts(torch.device(options.device))}} | document)
    )
    say(json.dumps(ends))
    return 0


if __name__ == "__main__":
    start(main)
