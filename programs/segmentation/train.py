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
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from classes import Classes, read_classes, slug_of
from config import Config, read_config
from data import PLAIN, Frame, Frames, TrainBatches, find_frames, frames_root, score_batches, split_by_scene, thin_out
from kit import checkpoint, nsight
from kit.precision import Precision
from kit.profile import StepProfile
from kit.tell import Teller, Value
from kit.timing import StepTimes, join_ranks
from kit.world import Pulse, World, add_up, enter, gather, leave, match_buffers, share
from metrics import confusion, iou_per_class, mean_iou, pixel_accuracy
from model import UNet, to_device
from objective import learning_rate, loss_of
from pool import Row, rows_of
from results import Results

STOPPED = 143
STEEPEST = 1.0  # gradients are cut to this length: a single odd frame must not undo many good steps


class Stopped(Exception):
    """The training was asked to stop, and is in a state to go on from."""


@dataclass
class Place:
    """How far a training is: `step` steps of `epoch` are done."""

    epoch: int = 0
    step: int = 0


@dataclass
class Training:
    """All that takes part in a training on this rank."""

    config: Config
    world: World
    teller: Teller
    pulse: Pulse
    times: StepTimes
    precision: Precision
    profile: StepProfile
    classes: Classes
    net: UNet
    model: nn.Module  # the net, compiled and joined with the other ranks
    optimizer: torch.optim.Optimizer
    train_set: Frames
    score_set: Frames
    order: TrainBatches
    place: Place

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.config.epochs * self.order.steps

    @property
    def step(self) -> int:
        """Steps that are done."""
        return self.place.epoch * self.order.steps + self.place.step

    def progress(self) -> dict[str, Value]:
        """How far we are, for those who watch."""
        where: dict[str, Value] = {"step": self.step, "steps": self.steps}
        return where | {"epoch": self.place.epoch + 1, "epochs": self.config.epochs}

    @property
    def frames_per_step(self) -> int:
        """Over all ranks."""
        return self.config.batch * self.world.size


def make_training(config: Config, world: World, teller: Teller) -> Training:
    """Find the frames and build everything around them."""
    classes = read_classes(frames_root(config.data))
    train_set, score_set = make_sets(config, classes, teller)
    torch.manual_seed(config.seed)
    net = UNet(len(classes.names), config.width).to(world.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    model: nn.Module = torch.compile(net) if config.compile or config.tune else net  # type: ignore[assignment]
    times, precision = StepTimes(world.device), Precision(config.precision, world.device)
    if world.size > 1:
        model = join_ranks(model, world.device, times)
    optimizer = torch.optim.AdamW(net.parameters(), lr=config.lr, weight_decay=0.02, fused=True)
    order = TrainBatches(len(train_set), config.batch, world.rank, world.size, config.seed)
    profile = StepProfile(config.profile_steps, world, times, config.out)
    rank = config, world, teller, Pulse(world), times, precision, profile
    return Training(*rank, classes, net, model, optimizer, train_set, score_set, order, Place())


def make_sets(config: Config, classes: Classes, teller: Teller) -> tuple[Frames, Frames]:
    """Frames to train on and to score on."""
    train = frames_of(config, config.data, teller)
    if config.more:
        train += frames_of(config, config.more, teller)
    if config.score_on:
        score, where = frames_of(config, config.score_on, teller), f"of {config.score_on}"
    else:
        train, score = split_by_scene(train, config.held_out)
        where = "of other scenes" if train[0].scene != score[-1].scene else "of the same scene"
    teller.line(f"{len(train)} frames to train on, {len(score)} {where} to score on")
    return Frames(train, classes, config.size, teller.warn), Frames(score, classes, config.size, teller.warn)


def frames_of(config: Config, folder: Path, teller: Teller) -> list[Frame]:
    """The frames of a folder, of which there must be some."""
    root = frames_root(folder)
    frames = thin_out(find_frames(root, config.cameras, teller.line), config.limit)
    if len(frames) < 2:
        raise SystemExit(
            f"{folder}: {len(frames)} labelled frames at {root}/SCENE/camera/cam_*/*.png; two are the least\n\n"
            f"hint: python programs/segmentation/scenes.py {folder} makes some"
        )
    return frames


def loader(training: Training, frames: Frames, batches: Any) -> DataLoader[tuple[Tensor, Tensor]]:
    """Reads frames, ahead of time and in other processes when there is a GPU to feed."""
    world, workers = training.world, training.config.workers
    if workers < 0:
        workers = min(8, max(1, len(os.sched_getaffinity(0)) // world.local_size)) if world.on_gpu else 0
    return DataLoader(
        frames, batch_sampler=batches, num_workers=workers, pin_memory=world.on_gpu, worker_init_fn=_deafen
    )


def _deafen(worker: int) -> None:
    """A launcher signals the whole group; a loader must outlive that for the step at hand to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def train_epoch(training: Training) -> None:
    """The steps of an epoch that are not yet done."""
    training.order.epoch, training.order.start = training.place.epoch, training.place.step
    training.model.train()
    clock = Clock(training)
    every = 10 if training.world.on_gpu else 1
    training.times.begin()
    for pictures, truth in loader(training, training.train_set, training.order):
        training.times.mark("input")
        loss = train_step(training, pictures, truth)
        training.place.step += 1
        seen = training.pulse.beat(loss if training.place.step % every == 0 else None)
        clock.tell(training.step - 1, seen)
        if training.pulse.stop:
            save(training)
            add_up(torch.zeros(1))  # a rank that left at once would have the launcher end the one that still writes
            raise Stopped
        if training.config.checkpoint_steps and training.place.step % training.config.checkpoint_steps == 0:
            save(training)
            training.times.mark("checkpoint")
        training.times.begin()
        training.profile.step()
    clock.tell(training.step, training.pulse.flush())
    if training.step == training.steps:
        training.profile.close()
    save(training)


def train_step(training: Training, pictures: Tensor, truth: Tensor) -> Tensor:
    """Forward, backward, update; returns the loss."""
    device = training.world.device
    torch.manual_seed((training.config.seed << 32) + training.step * training.world.size + training.world.rank)
    highest = training.config.lr * math.sqrt(training.frames_per_step / 8)
    for group in training.optimizer.param_groups:
        group["lr"] = learning_rate((training.step + 1) / training.steps, highest)
    with training.precision.reduced():
        scores = training.model(to_device(pictures, device))
    loss = loss_of(scores, truth.to(device, non_blocking=True))
    training.optimizer.zero_grad(set_to_none=True)
    training.precision.backward(loss)
    training.times.mark("communication" if training.world.size > 1 else "compute")
    training.precision.update(training.optimizer, STEEPEST)
    training.times.mark("compute")
    return loss.detach()


class Clock:
    """Tells progress and how many images a second all ranks take together."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.began, self.first = time.monotonic(), training.step

    def tell(self, step: int, loss: float | None) -> None:
        """Say how far we are, when a loss is known."""
        if loss is None:
            return
        training = self.training
        frames = (training.step - self.first) * training.frames_per_step
        per_s = frames / max(1e-9, time.monotonic() - self.began)
        values = training.progress() | {"step": step, "images_per_s": round(per_s, 2)}
        training.teller.step(values, loss, training.times.told)


@torch.no_grad()
def score(training: Training) -> Tensor:
    """The confusion matrix over the held-out frames, summed over all ranks."""
    world, count = training.world, len(training.classes.names)
    match_buffers(training.net)
    training.net.eval()
    matrix = torch.zeros(count, count, dtype=torch.int64, device=world.device)
    batches = score_batches(len(training.score_set), training.config.batch, world.rank, world.size)
    for pictures, truth in loader(training, training.score_set, batches):
        matrix += confusion(predict(training, pictures), truth.to(world.device), count)
        training.pulse.beat()
        if training.pulse.stop:
            raise Stopped
    training.pulse.flush()
    if training.pulse.stop:
        raise Stopped
    return add_up(matrix).cpu()


@torch.no_grad()
def predict(training: Training, pictures: Tensor) -> Tensor:
    """The class of every pixel."""
    return scores_of(training, pictures).argmax(1)


def scores_of(training: Training, pictures: Tensor) -> Tensor:
    """How much speaks for each class, in every pixel."""
    with training.precision.reduced():
        scores: Tensor = training.net(to_device(pictures, training.world.device))
    return scores


@torch.no_grad()
def predict_pool(training: Training, folder: Path) -> list[Row]:
    """What the model makes of the frames of a folder, each rank of its share: a row for each, at the leader."""
    config, world = training.config, training.world
    frames = frames_of(config, folder, training.teller)
    pool = Frames(frames, training.classes, config.size, training.teller.warn)
    training.net.eval()
    keys = [(place, PLAIN) for place in range(world.rank, len(frames), world.size)]
    batches = [keys[start : start + config.batch] for start in range(0, len(keys), config.batch)]
    rows: list[Row] = []
    for batch, (pictures, truth) in zip(batches, loader(training, pool, batches), strict=True):
        images = [frames[place].image.relative_to(folder).as_posix() for place, _ in batch]
        rows += rows_of(scores_of(training, pictures).softmax(1), truth, images, training.classes.names)
    return sorted(gather(rows), key=lambda row: str(row["image"]))


def save(training: Training) -> None:
    """Write a checkpoint, if any are kept; the leader's state is everyone's."""
    config, place = training.config, training.place
    if config.checkpoint and training.world.leads:
        checkpoint.save(
            config.checkpoint,
            training.step,
            {
                "model": training.net.state_dict(),
                "optimizer": training.optimizer.state_dict(),
                "epoch": place.epoch,
                "frames": place.step * training.frames_per_step,
                "shape": shape(training),
            },
        )


def shape(training: Training) -> dict[str, Any]:
    """What must be equal for a checkpoint to fit."""
    return {"width": training.config.width, "classes": training.classes.names}


def resume(training: Training) -> None:
    """Go on from the newest whole checkpoint, if there is one.

    The leader reads it and hands it out, so all ranks go on from the same one, shared disk or not. The place is kept in
    frames: a run may come back with another number of ranks.
    """
    folder = training.config.checkpoint
    found = share(checkpoint.load_latest(folder, training.teller.line) if folder and training.world.leads else None)
    if found is None:
        return
    name, state = found
    if state["shape"] != shape(training):
        raise SystemExit(
            f"{folder}/{name} is of another network or class list\n\nhint: give --checkpoint another folder"
        )
    training.net.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    training.place = place_of(training, state)
    training.teller.line(
        f"resumed from {name}: epoch {training.place.epoch + 1}, step {training.place.step} of {training.order.steps}"
    )


def place_of(training: Training, state: checkpoint.State) -> Place:
    """Where a checkpoint goes on; one from beyond the last epoch is only scored."""
    if state["epoch"] >= training.config.epochs:
        return Place(training.config.epochs - 1, training.order.steps)
    return Place(state["epoch"], min(training.order.steps, -(-state["frames"] // training.frames_per_step)))


def epochs_left(training: Training) -> Iterator[int]:
    """The numbers of the epochs to do, from 1; an epoch counts as done once it was scored."""
    while training.place.epoch < training.config.epochs:
        yield training.place.epoch + 1
        training.place = Place(training.place.epoch + 1)


def train(training: Training) -> Tensor:
    """Train to the end, scoring after every epoch; returns the last confusion matrix."""
    teller = training.teller
    matrix = torch.zeros(0)
    teller.mllog("INTERVAL_START", "run_start")
    for epoch in epochs_left(training):
        began = time.monotonic()
        train_epoch(training)
        matrix = score(training)
        quality, right = mean_iou(matrix), pixel_accuracy(matrix)
        teller.mllog("POINT_IN_TIME", "eval_accuracy", round(quality, 6), epoch_num=epoch)
        teller.values(training.progress() | {"mean_iou": quality, "pixel_accuracy": right})
        took_s = time.monotonic() - began
        teller.line(
            f"epoch {epoch}/{training.config.epochs}  mean IoU {quality:.3f}  pixels right {right:.3f}  {took_s:.1f} s"
        )
    teller.mllog("INTERVAL_END", "run_stop", status="success")
    return matrix


def conclude(training: Training, matrix: Tensor) -> None:
    """Write the results and tell the score of each class."""
    results = Results(training.config.out, training.classes)
    results.write_scores(matrix)
    results.write_examples(training.score_set, lambda pictures: predict(training, pictures).cpu())
    about = {"width": training.config.width, "size": list(training.config.size), "mean_iou": mean_iou(matrix)}
    results.write_model(training.net.state_dict(), about)
    scored = zip(training.classes.names, iou_per_class(matrix), strict=True)
    training.teller.values({f"iou.{slug_of(name)}": iou for name, iou in scored if iou is not None})
    training.teller.line(f"results in {training.config.out}")


def main(arguments: Sequence[str]) -> int:
    """Train as the command line says; returns the exit code."""
    config = read_config(arguments)
    nsys = nsight.program_for(config)
    if nsys is not None:
        return nsight.run_again(nsys, config.out)
    world = enter(config.device)
    teller = Teller(world.leads, config.tell_every_s)
    training, code = make_training(config, world, teller), 0
    try:
        resume(training)
        matrix = train(training)
        rows = predict_pool(training, config.pool) if config.pool else []
        if world.leads:
            conclude(training, matrix)
            Results(config.out, training.classes).write_samples(rows)
    except Stopped:
        teller.mllog("INTERVAL_END", "run_stop", status="aborted")
        teller.line(f"stopped at step {training.step} of {training.steps}")
        code = STOPPED
    except RuntimeError:
        if training.pulse.asked:  # a rank that was asked first is gone already, and its connection with it
            return STOPPED
        raise
    leave()
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
