"""Where the time of a training goes; its parts sum to the whole.

Waiting for input, computing, waiting for other ranks, keeping checkpoints, compiling, scoring: each moment of a
training is in one of them. While a profiler starts and writes, the clock stands still.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import torch
from torch import nn
from torch._dynamo.callback import on_compile_end, on_compile_start
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel

PARTS = ("input", "compute", "communication", "checkpoint", "compile", "evaluation")
SPENT = {
    "input": "spent.data_wait",
    "compute": "spent.productive",
    "communication": "spent.productive",
    "checkpoint": "spent.checkpoint_save",
    "compile": "spent.compile",
    "evaluation": "spent.evaluation",
}
"""What Podwright calls them where it says what became of all the time that a run was given."""
Mark = tuple[str, Any]
"""The part that ends here, and the moment: seconds on a CPU, an event of its stream on a GPU."""
OPEN_AT_MOST = 64


class StepTimes:
    """Means over the steps since they were last told.

    On a GPU the moments are events on its own stream, read when they are long past: nothing waits for them. The time
    between two events is then what the GPU did or waited for, not what the host was busy with meanwhile.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._marks: list[Mark] = []
        self._open: deque[list[Mark]] = deque()
        self._sums = dict.fromkeys(PARTS, 0.0)
        self._all = dict.fromkeys(PARTS, 0.0)
        self._steps = 0

    def begin(self) -> None:
        """A step begins where the one before ended, at its last mark."""
        if self._marks:
            self._open.append(self._marks)
        self._marks = [("", self._marks[-1][1] if self._marks else self._now())]
        while self._open and (len(self._open) > OPEN_AT_MOST or self._is_past(self._open[0])):
            self._add(self._open.popleft())
            self._steps += 1

    def mark(self, part: str) -> None:
        """The time since the last mark went into `part`."""
        if self._marks:
            self._marks.append((part, self._now()))

    def leave_out(self) -> None:
        """The time since the last mark went into something that is no part of a training."""
        self.mark("")

    def end(self) -> None:
        """Nothing is open any more; the next step begins at a moment of its own."""
        for marks in (*self._open, self._marks):
            self._add(marks)
        self._open.clear()
        self._marks = []

    def told(self) -> dict[str, float]:
        """Seconds of a mean step by part, since the last call; empty when no step has ended."""
        if self._steps == 0:
            return {}
        means = {f"{part}_s": seconds / self._steps for part, seconds in self._sums.items()}
        self._sums, self._steps = dict.fromkeys(PARTS, 0.0), 0
        return means

    def totals(self) -> dict[str, float]:
        """Seconds by part of all steps that have ended."""
        return dict(self._all)

    def spent(self) -> dict[str, float]:
        """The same under Podwright's names: they only grow, so that none is lost with a line that is."""
        sums = {"spent.productive": 0.0}
        for part, seconds in self._all.items():
            if seconds:
                sums[SPENT[part]] = sums.get(SPENT[part], 0.0) + seconds
        return sums

    def own_work(self) -> float:
        """Seconds in which this rank waited for no other."""
        return self._all["input"] + self._all["compute"]

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def _is_past(self, marks: list[Mark]) -> bool:
        return not self._on_gpu or bool(marks[-1][1].query())

    def _add(self, marks: list[Mark]) -> None:
        for (_, before), (part, after) in pairwise(marks):
            if part:
                seconds = self._between(before, after)
                self._sums[part] += seconds
                self._all[part] += seconds

    def _between(self, before: Any, after: Any) -> float:
        if not self._on_gpu:
            return float(after - before)
        after.synchronize()
        return float(before.elapsed_time(after)) / 1000


def slowest_of(works: Sequence[float]) -> dict[str, float | int]:
    """Which rank took longest for its own work of a step, and how long the middle of the others did."""
    if len(works) < 2:
        return {}
    slowest = max(range(len(works)), key=lambda rank: works[rank])
    others = median(seconds for rank, seconds in enumerate(works) if rank != slowest)
    return {"work_s": others, "work_slowest_s": works[slowest], "work_slowest_rank": slowest}


def mark_compiling(times: StepTimes) -> None:
    """Have what torch.compile takes inside of a step counted as compiling; what came before it was computing."""
    on_compile_start(lambda about: times.mark("compute"))
    on_compile_end(lambda about: times.mark("compile"))


def join_ranks(model: nn.Module, device: torch.device, times: StepTimes) -> DistributedDataParallel:
    """Have all ranks average their gradients while they compute them.

    From the moment the last gradients are there, a rank only waits for the others: that is communication that computing
    does not hide. The rest of it costs nothing.
    """
    devices = [device.index] if device.type == "cuda" else None
    joined = DistributedDataParallel(model, device_ids=devices, gradient_as_bucket_view=True)

    def reduce(state, bucket):  # type: ignore[no-untyped-def]  # PyTorch refuses annotations that are strings
        if bucket.is_last():
            times.mark("compute")
        return allreduce_hook(state, bucket)

    joined.register_comm_hook(None, reduce)
    return joined
