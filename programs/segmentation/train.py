"""Trains semantic segmentation on A2D2 frames with PyTorch DDP.

Alone, on one machine with torchrun, and on anything with Podwright:

    python programs/segmentation/scenes.py examples/a2d2-small --frames 480 --scenes 4
    python programs/segmentation/train.py --data examples/a2d2-small
    torchrun --nproc-per-node 2 programs/segmentation/train.py --data examples/a2d2-small
    podwright run examples/segmentation.yaml

For real A2D2 frames give the folder that holds the scenes, and a size that keeps small things visible:

    torchrun --nproc-per-node 8 programs/segmentation/train.py --data camera_lidar_semantic --size 960x608 --width 48

A training that finds a checkpoint goes on from it, to the same weights as if it had never stopped: order and changes of
the frames, learning rate and dropout are all functions of seed, epoch and step, so none of them has a state to lose.
SIGTERM ends it after the step at hand, with a checkpoint and exit code 143.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from classes import read_classes, slug_of
from config import Config, read_config
from data import Frame, Frames, find_frames, frames_root, split_by_scene, thin_out
from kit.loader import Loader
from kit.loop import Task, run
from kit.precision import Precision
from kit.rates import warm_then_cosine
from kit.samples import from_step
from kit.tell import Teller
from kit.world import World, add_up, gather
from metrics import confusion, iou_per_class, mean_iou, pixel_accuracy
from model import UNet, to_device
from objective import loss_of
from pool import Row, rows_of
from results import Results


class Learner(UNet):
    """The network with its loss, which is computed in full precision."""

    def forward(self, pictures: Tensor, truth: Tensor) -> Tensor:  # type: ignore[override]
        scores = self.scores(pictures)
        with torch.autocast(scores.device.type, enabled=False):
            return loss_of(scores, truth)

    def scores(self, pictures: Tensor) -> Tensor:
        """How much speaks for each class, in every pixel."""
        return super().forward(pictures)


class Scenes(Task):
    """The task: frames of driving scenes."""

    benchmark, quality, speed = "segmentation", "mean_iou", "images_per_s"
    steepest = 1.0  # a single odd frame must not undo many good steps
    net: Learner

    def __init__(self, config: Config, world: World) -> None:
        self.config, self.world = config, world
        self.teller, self.precision = Teller(world.leads, 0.0), Precision(config.precision, world.device)
        self.classes = read_classes(frames_root(config.data))
        self.train_set, self.score_set = self._sets()
        self.net = Learner(len(self.classes.names), config.width)
        self.net.to(world.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=config.lr, weight_decay=0.02, fused=True)
        self.train_set.draws = True
        self.epochs, self.batch = config.epochs, config.batch
        self.loader = self._loader(self.train_set, "pad")
        self.steps = self.loader.steps
        self.train_samples, self.eval_samples = len(self.train_set), len(self.score_set)
        self.matrix = torch.zeros(0)

    def _sets(self) -> tuple[Frames, Frames]:
        """Frames to train on and to score on."""
        config = self.config
        train = self._frames_of(config.data)
        if config.more:
            train += self._frames_of(config.more)
        if config.score_on:
            score, where = self._frames_of(config.score_on), f"of {config.score_on}"
        else:
            train, score = split_by_scene(train, config.held_out)
            where = "of other scenes" if train[0].scene != score[-1].scene else "of the same scene"
        self.teller.line(f"{len(train)} frames to train on, {len(score)} {where} to score on")
        return self._set(train), self._set(score)

    def _set(self, frames: list[Frame]) -> Frames:
        return Frames(frames, self.classes, self.config.size, self.teller.warn)

    def _frames_of(self, folder: Path) -> list[Frame]:
        """The frames of a folder, of which there must be some."""
        root = frames_root(folder)
        frames = thin_out(find_frames(root, self.config.cameras, self.teller.line), self.config.limit)
        if len(frames) < 2:
            raise SystemExit(
                f"{folder}: {len(frames)} labelled frames at {root}/SCENE/camera/cam_*/*.png; two are the least\n\n"
                f"hint: python programs/segmentation/scenes.py {folder} makes some"
            )
        return frames

    def _loader(self, frames: Frames, tail: str) -> Loader:
        """Reads frames, ahead of time and in other processes when there is a GPU to feed; to score, in their order."""
        options = {"num_workers": self.config.workers} if self.config.workers >= 0 else {}
        is_training = tail == "pad"
        loader = Loader(frames, self.batch, seed=self.config.seed, shuffle=is_training, tail=tail, **options)
        return loader.among(self.world.rank, self.world.size).to(self.world.device)

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """This rank's frames of each step."""
        for pictures, truth in from_step(self.loader, epoch, start):
            yield to_device(pictures, self.world.device), truth

    def rate(self, progress: float) -> float:
        """Up and down again, by the root of the frames of a step."""
        return warm_then_cosine(progress, self.config.lr * math.sqrt(self.batch * self.world.size / 8), warm=0.2)

    @torch.no_grad()
    def score(self) -> dict[str, float]:
        """Mean IoU over the held-out frames, and the share of pixels that is right."""
        count = len(self.classes.names)
        matrix = torch.zeros(count, count, dtype=torch.int64, device=self.world.device)
        for step, (pictures, truth) in enumerate(self._loader(self.score_set, "uneven")):
            matrix += confusion(self.scores_of(pictures).argmax(1), truth, count)
            if step < self.eval_samples // (self.batch * self.world.size):  # which all ranks make
                self.heed()
        self.matrix = add_up(matrix).cpu()
        return {"mean_iou": mean_iou(self.matrix), "pixel_accuracy": pixel_accuracy(self.matrix)}

    @torch.no_grad()
    def scores_of(self, pictures: Tensor) -> Tensor:
        """How much speaks for each class, in every pixel of these pictures."""
        with self.precision.reduced():
            return self.net.scores(to_device(pictures, self.world.device))

    def predict_pool(self, folder: Path) -> list[Row]:
        """What the model makes of the frames of a folder, each rank of its share: a row for each, at the leader."""
        world, size = self.world, self.batch
        frames = self._frames_of(folder)
        mine = frames[world.rank :: world.size]
        rows: list[Row] = []
        for step, (pictures, truth) in enumerate(self._loader(self._set(frames), "uneven")):
            images = [frame.image.relative_to(folder).as_posix() for frame in mine[step * size : (step + 1) * size]]
            rows += rows_of(self.scores_of(pictures).softmax(1), truth, images, self.classes.names)
        return sorted(gather(rows), key=lambda row: str(row["image"]))

    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""
        return {"width": self.config.width, "classes": self.classes.names}

    def conclude(self, out: Path, teller: Teller) -> None:
        """Write the results and tell the score of each class."""
        rows = self.predict_pool(self.config.pool) if self.config.pool else []
        if not self.world.leads:
            return
        results = Results(out, self.classes)
        results.write_scores(self.matrix)
        results.write_examples(self.score_set, lambda pictures: self.scores_of(pictures).argmax(1).cpu())
        about = {"width": self.config.width, "size": list(self.config.size), "mean_iou": mean_iou(self.matrix)}
        results.write_model(self.net.state_dict(), about)
        scored = zip(self.classes.names, iou_per_class(self.matrix), strict=True)
        teller.values({f"iou.{slug_of(name)}": iou for name, iou in scored if iou is not None})
        teller.line(f"results in {out}")
        results.write_samples(rows)


def main(arguments: Sequence[str]) -> int:
    """Train as the command line says; returns the exit code."""
    config = read_config(arguments)
    return run(config, partial(Scenes, config))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
