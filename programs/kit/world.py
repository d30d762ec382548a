"""The ranks of a training: who we are, on which device, and what all must agree on.

Reads the contract that torchrun and Podwright set (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT); without it,
a run is alone.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True)
class World:
    """This rank among all."""

    rank: int
    size: int
    local_size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this rank writes and speaks for all."""
        return self.rank == 0

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a GPU."""
        return self.device.type == "cuda"


def enter(device: str) -> World:
    """Join the other ranks; the device is "auto", "cpu" or "cuda"."""
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    local_rank, local_size = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = torch.device(device)
    if chosen.type == "cuda":
        # A launcher that shows each rank its own GPU only leaves one, numbered 0.
        chosen = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(chosen)
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    elif local_size > 1:
        torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // local_size))
    if "RANK" in os.environ:
        # Both kinds at once: gradients go the GPU's way, the few words that ranks exchange stay on the CPU.
        dist.init_process_group("cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo")
    return World(rank, size, local_size, chosen)


def leave() -> None:
    """Part from the other ranks."""
    if dist.is_initialized():
        dist.destroy_process_group()


def share(value: Any) -> Any:
    """The leader's value, on every rank."""
    if not dist.is_initialized():
        return value
    box = [value]
    dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
    return box[0]


def gather(values: list[Any]) -> list[Any]:
    """The values of all ranks, on every rank."""
    if not dist.is_initialized():
        return values
    boxes: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(boxes, values)
    return [value for box in boxes for value in box]


def add_up(tensor: Tensor) -> Tensor:
    """The sum over all ranks."""
    if dist.is_initialized():
        dist.all_reduce(tensor)
    return tensor


def match_buffers(model: torch.nn.Module) -> None:
    """Give every rank the leader's buffers: batch norms drift apart between two steps, and all must score one model."""
    if dist.is_initialized():
        for buffer in model.buffers():
            dist.broadcast(buffer, src=0)


class Pulse:
    """One tiny sum over all ranks per step: the mean loss, and whether any rank was asked to stop.

    Ranks are not asked at the same moment, and one that left alone would hang the others. The sum of one step is read
    at the next, so it costs no waiting. Reading a loss waits for the GPU: give one every few steps only. Now and then
    all ranks say beside it how long their own work of a step takes: all have the same step time, so only that shows
    which of them is slow.
    """

    def __init__(self, world: World) -> None:
        self._ranks, self._rank = world.size, world.rank
        self._asked = False
        self._group: Any = dist.new_group(backend="gloo") if dist.is_initialized() else None
        self._open: tuple[Tensor, dist.Work | None, bool] | None = None
        self.stop = False
        self._works: list[float] = []
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked = True

    @property
    def asked(self) -> bool:
        """Whether this rank itself was asked to stop."""
        return self._asked

    def beat(self, loss: Tensor | None = None, work_s: float | None = None) -> float | None:
        """Tell of this step and learn of the one before: its mean loss, and `stop`, alike on all ranks.

        `work_s` is given by all ranks at the same steps, or by none.
        """
        before = self.flush()
        said = [float(self._asked), float(loss) if loss is not None else 0.0]
        if work_s is not None:
            said += [work_s if rank == self._rank else 0.0 for rank in range(self._ranks)]
        words = torch.tensor(said, dtype=torch.float64)
        work = dist.all_reduce(words, group=self._group, async_op=True) if self._group else None
        self._open = words, work, loss is not None
        return before

    def take_works(self) -> list[float]:
        """Each rank's own work of a step, in seconds, once after they were told."""
        works, self._works = self._works, []
        return works

    def flush(self) -> float | None:
        """The mean loss of the step that was told of last and not yet learnt of."""
        if self._open is None:
            return None
        words, work, has_loss = self._open
        self._open = None
        if work is not None:
            work.wait()
        self.stop = bool(words[0] > 0)
        if len(words) > 2:
            self._works = words[2:].tolist()
        return float(words[1]) / self._ranks if has_loss else None
