"""Throughput without data: the same noise again and again."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

from .loop import Task


class Noise(Task):
    """Mixed into a task: no target ends it, and nothing is learnt."""

    noise: tuple[Tensor, ...]

    def repeat(self, noise: tuple[Tensor, ...], steps: int, samples: int) -> None:
        """Make an epoch of so many steps with this batch, of so many samples over all ranks."""
        self.noise, self.steps, self.target = noise, steps, float("inf")
        self.train_samples, self.eval_samples = steps * samples, 0

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """The same batch in every step."""
        for _ in range(start, self.steps):
            yield self.noise

    def score(self) -> dict[str, float]:
        """Nothing was learnt."""
        return {self.quality: 0.0}
