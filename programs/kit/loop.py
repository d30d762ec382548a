"""The loop every program trains in: epochs, steps, scores, checkpoints, stopping when asked, telling what happens.

A program hands in a `Task`. A training that finds a checkpoint goes on from it: the order of samples and the learning
rate are functions of seed, epoch and step, so none of them has a state to lose. SIGTERM ends it after the step at hand,
with a checkpoint and exit code 143.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from . import checkpoint, nsight
from .compiled import folder_of, keep_compiled
from .mlperf import Log
from .options import Shared
from .precision import Precision
from .profile import StepProfile
from .sharding import is_sharded, load_whole, whole_state
from .speed import Recent
from .tell import Teller, Value
from .timing import StepTimes, join_ranks, mark_compiling, slowest_of
from .world import Pulse, World, add_up, enter, leave, match_buffers, share

STOPPED = 143
TOLD_EVERY_STEPS = 10  # on a GPU: to read a loss is to wait for it
WORK_EVERY_STEPS = 20  # how often ranks compare how long their own work of a step takes


class Stopped(Exception):
    """The training was asked to stop, and is in a state to go on from."""


class Task(ABC):
    """What a program adds to the loop; it sets each of these."""

    benchmark: str
    """Its name among MLPerf's benchmarks, or its own."""
    quality: str
    """Name of the value that is to reach the target."""
    target: float | None = None
    """Training ends when the quality has reached this; higher is better. None: after its last epoch, and well."""
    epochs: int
    steps: int
    """Steps of an epoch."""
    batch: int
    """Samples of a step, of one rank."""
    train_samples: int
    eval_samples: int
    world: World
    net: nn.Module
    """What is trained; its output for a batch is the loss."""
    optimizer: torch.optim.Optimizer
    steepest: float | None = None
    """Gradients are cut to this length; None: as they are."""
    flops_per_sample = 0.0
    """Floating-point operations of training on one sample; 0: not told."""
    speed = "samples_per_s"
    """What the speed is called that is told."""
    pulse: Pulse | None = None
    """The loop's, while it trains this task."""

    @abstractmethod
    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        """The batches of an epoch from step `start` on, for this rank, on its device."""

    @abstractmethod
    def rate(self, progress: float) -> float:
        """The learning rate after this share of the training."""

    @abstractmethod
    def score(self) -> dict[str, float]:
        """What the network can do now, over all ranks; holds `quality`."""

    @abstractmethod
    def shape(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to fit."""

    def heed(self) -> None:
        """Within a long score: stop here where any rank was asked to. All ranks call it equally often."""
        if self.pulse is not None:
            self.pulse.beat()
            if self.pulse.stop:
                raise Stopped

    def conclude(self, out: Path, teller: Teller) -> None:
        """Leave the results; every rank comes here once its last epoch is scored."""
        if self.world.leads:
            out.mkdir(parents=True, exist_ok=True)
            torch.save({"model": self.net.state_dict(), **self.shape()}, out / "model.pt")


@dataclass
class Place:
    """How far a training is: `step` steps of `epoch` are done."""

    epoch: int = 0
    step: int = 0


class Loop:
    """One training on this rank."""

    def __init__(self, settings: Shared, world: World, teller: Teller, task: Task) -> None:
        self.settings, self.world, self.teller, self.task = settings, world, teller, task
        self.log, self.times, self.pulse = Log(teller), StepTimes(world.device), Pulse(world)
        self.precision = Precision(settings.precision, world.device)
        self.profile = StepProfile(settings.profile_steps, world, self.times, settings.out)
        model: nn.Module = task.net
        if settings.compile or settings.tune:
            kept = folder_of(os.environ)
            if kept is not None:
                keep_compiled(kept, world.device)
            mark_compiling(self.times)
            model = torch.compile(model, options={"coordinate_descent_tuning": settings.tune})  # type: ignore[assignment]
        self._joined = world.size > 1 and not is_sharded(task.net)
        if self._joined:
            model = join_ranks(model, world.device, self.times)
        self.model, self.place, task.pulse = model, Place(), self.pulse
        self._recent, self._worked, self._restored_s = Recent(), (0, 0.0), 0.0
        self._kept: checkpoint.Background | None = None
        if settings.checkpoint is not None and world.leads:
            self._kept = checkpoint.Background(settings.checkpoint, settings.skip_checkpoints)

    @property
    def step(self) -> int:
        """Steps that are done."""
        return self.place.epoch * self.task.steps + self.place.step

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return self.task.epochs * self.task.steps

    @property
    def global_batch(self) -> int:
        """Samples of a step, over all ranks."""
        return self.task.batch * self.world.size

    def progress(self) -> dict[str, Value]:
        """How far we are, for those who watch."""
        where: dict[str, Value] = {"step": self.step, "steps": self.steps}
        return where | {"epoch": self.place.epoch + 1, "epochs": self.task.epochs}

    def train(self) -> bool:
        """Train until the target is reached or the epochs are over; returns whether all went as it should."""
        while self.place.epoch < self.task.epochs:
            epoch, began = self.place.epoch + 1, time.monotonic()
            with self.log.part("epoch", epoch_num=epoch):
                self._train_epoch()
            reached = self._score(epoch, began)
            if reached or epoch == self.task.epochs:
                self.profile.close()
                self.settle()
                self.times.mark("checkpoint")
                return reached or self.task.target is None
            self.place = Place(epoch)
        return False

    def _train_epoch(self) -> None:
        self.model.train()
        every = TOLD_EVERY_STEPS if self.world.on_gpu else 1
        self.times.begin()
        began = time.monotonic()
        for batch in self.task.batches(self.place.epoch, self.place.step):
            self.times.mark("input")
            loss = self.train_step(batch)
            self.place.step += 1
            told = self.pulse.beat(loss if self.place.step % every == 0 else None, self._work())
            self.times.mark("compute")
            self._keep()
            now = time.monotonic()
            self._recent.add(now - began)
            self._tell(self.step - 1, told)
            self.times.begin()
            began = time.monotonic()
            if self.profile.step():
                self.times.leave_out()
                began = time.monotonic()
        self._tell(self.step, self.pulse.flush())
        self.save()
        self.times.mark("checkpoint")

    def _work(self) -> float | None:
        """This rank's own work of a mean step since it was last asked for; None where it is not its turn.

        What sharded weights wait for cannot be told from what they compute.
        """
        if not self._joined or self.step % WORK_EVERY_STEPS:
            return None
        (step, seconds), self._worked = self._worked, (self.step, self.times.own_work())
        return (self._worked[1] - seconds) / (self.step - step)

    def spent(self) -> dict[str, float]:
        """What became of the time so far, by Podwright's names."""
        return self.times.spent() | ({"spent.restore": self._restored_s} if self._restored_s else {})

    def train_step(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Forward, backward, update; returns the loss."""
        task = self.task
        torch.manual_seed((self.settings.seed << 32) + self.step * self.world.size + self.world.rank)
        for group in task.optimizer.param_groups:
            group["lr"] = task.rate((self.step + 1) / self.steps) * group.get("scale", 1.0)
        self._hold(changing="buffers")
        with self.precision.reduced():
            loss: Tensor = self.model(*batch)
        task.optimizer.zero_grad(set_to_none=True)
        self.precision.backward(loss)
        self._hold(changing="weights")
        self.times.mark("communication" if self._joined else "compute")
        self.precision.update(task.optimizer, task.steepest)
        self.times.mark("compute")
        return loss.detach()

    def _hold(self, changing: str) -> None:
        """Hold the device until a checkpoint is copied: weights change at an update, buffers before it."""
        has_buffers = next(self.task.net.buffers(), None) is not None
        if self._kept is not None and has_buffers == (changing == "buffers"):
            self._kept.before_change()

    def _keep(self) -> None:
        """Write a checkpoint where one is due, and stop where any rank was asked to."""
        every = self.settings.checkpoint_steps
        if self._kept is not None:
            self._kept.check()
        if self.pulse.stop:
            self.save()
            self.settle()
            self.times.mark("checkpoint")
            add_up(torch.zeros(1))  # a rank that left at once would have the launcher end the one that still writes
            raise Stopped
        if every and self.place.step % every == 0:
            self.save()
            self.times.mark("checkpoint")

    def _tell(self, step: int, loss: float | None) -> None:
        if loss is None:
            return
        per_s = self._recent.steps_per_s() * self.global_batch
        values = self.progress() | {"step": step, self.task.speed: round(per_s, 2)}
        if self.task.flops_per_sample:
            values["tflops"] = per_s * self.task.flops_per_sample / self.world.size / 1e12
        self.teller.step(values, loss, lambda: self.times.told() | slowest_of(self.pulse.take_works()) | self.spent())

    def _score(self, epoch: int, epoch_began: float) -> bool:
        task, began = self.task, time.monotonic()
        match_buffers(task.net)
        task.net.eval()
        with self.log.part("eval", epoch_num=epoch):
            values = task.score()
            self.log.point("eval_accuracy", round(values[task.quality], 6), epoch_num=epoch)
            self.pulse.flush()
        self.teller.values(self.progress() | values | {"epoch_s": time.monotonic() - epoch_began})
        self.times.mark("evaluation")
        listed = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
        self.teller.line(f"epoch {epoch}/{task.epochs}  {listed}  scored in {time.monotonic() - began:.1f} s")
        return task.target is not None and values[task.quality] >= task.target

    def save(self) -> None:
        """Write a checkpoint, if any are kept; the leader's state is everyone's."""
        if self.settings.checkpoint is None:
            return
        model, optimizer = whole_state(self.task.net, self.task.optimizer)  # in which every rank has a part
        if self._kept is None:
            return
        state = {
            "model": model,
            "optimizer": optimizer,
            "epoch": self.place.epoch,
            "samples": self.place.step * self.global_batch,
            "shape": self.task.shape(),
        }
        self._kept.save(self.step, state)

    def settle(self) -> None:
        """Wait for the checkpoint that is being written, once, and no longer than the run is given to end."""
        kept, self._kept = self._kept, None
        if kept is None:
            return
        if not kept.wait(self.settings.grace_s):
            self.teller.warn(
                f"the last checkpoint is not whole after {self.settings.grace_s:g} s: the one before stays"
            )
        if kept.skipped:
            self.teller.line(f"{kept.skipped} checkpoints were left out: the one before was still being written")
        if kept.written:
            self.teller.values({"step": self.step, **kept.figures()})

    def resume(self) -> None:
        """Go on from the newest whole checkpoint, if there is one.

        The leader reads it and hands it out, so all ranks go on from the same one. The place is kept in samples: a run
        may come back with another number of ranks.
        """
        folder, began = self.settings.checkpoint, time.monotonic()
        latest = share(checkpoint.load_latest(folder, self.teller.line) if folder and self.world.leads else None)
        if latest is None:
            return
        name, state = latest
        shape, other = self.task.shape(), state["shape"]
        differs = [key for key in {**shape, **other} if shape.get(key) != other.get(key)]
        if differs:
            message = f"{folder}/{name} is of another network, by its {' and '.join(differs)}"
            raise SystemExit(f"{message}\n\nhint: give --checkpoint another folder")
        load_whole(self.task.net, self.task.optimizer, state["model"], state["optimizer"])
        self.place, self._restored_s = self._place_of(state), time.monotonic() - began
        self._worked = self.step, 0.0
        where = f"epoch {self.place.epoch + 1}, step {self.place.step} of {self.task.steps}"
        self.teller.line(f"resumed from {name}: {where}")

    def _place_of(self, state: checkpoint.State) -> Place:
        """Where a checkpoint goes on; one from beyond the last epoch is only scored."""
        if state["epoch"] >= self.task.epochs:
            return Place(self.task.epochs - 1, self.task.steps)
        samples = state["samples"] if "samples" in state else state["frames"]  # as 0.1's segmentation called them
        return Place(state["epoch"], min(self.task.steps, -(-samples // self.global_batch)))

    def tell_end(self) -> None:
        """Say what became of the time, now that no step follows."""
        self.times.end()
        self.teller.values({"step": self.step, **self.spent()})


def run(settings: Shared, make_task: Callable[[World], Task]) -> int:
    """Train as the settings say; returns the exit code."""
    nsys = nsight.program_for(settings)
    if nsys is not None:
        return nsight.run_again(nsys, settings.out)
    world = enter(settings.device)
    teller = Teller(world.leads, settings.tell_every_s)
    log = Log(teller)
    log.begin("init_start")
    torch.manual_seed(settings.seed)
    task = make_task(world)
    log.submission(task.benchmark)
    loop, code = Loop(settings, world, teller, task), 0
    try:
        loop.resume()
        log.sizes(loop.global_batch, task.train_samples, task.eval_samples)
        log.end("init_stop")
        log.begin("run_start")
        reached = loop.train()
        log.end("run_stop", status="success" if reached else "aborted")
        loop.tell_end()
        task.conclude(settings.out, teller)
    except Stopped:
        loop.settle()
        log.end("run_stop", status="aborted")
        loop.tell_end()
        teller.line(f"stopped at step {loop.step} of {loop.steps}")
        code = STOPPED
    except Exception as error:
        loop.settle()
        if loop.pulse.asked and isinstance(error, RuntimeError):
            return STOPPED  # a rank that was asked first is gone already, and its connection with it
        if isinstance(error, OSError):
            raise SystemExit(f"{error}\n\nhint: the last whole checkpoint is in {settings.checkpoint}") from error
        raise
    leave()
    return code
