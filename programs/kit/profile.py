"""A profile of a few steps: which operations took the time, how long the device idled, and what it waited for.

`podwright run --profile` asks for it by PODWRIGHT_PROFILE, the number of steps. PyTorch's profiler looks, or on a GPU
Nsight Systems where it is installed. The leader writes `profile.json` into the results; the run's report shows it. To
be profiled costs time: such a run is not one to compare with others.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from . import nsight
from .kernels import MAX_OPERATIONS, Kernel, summary_of
from .timing import StepTimes
from .world import World

SKIPPED = 5
"""Steps before the first that is looked at: they load, compile and choose."""
US = 1e-6


class StepProfile:
    """Looks at so many steps of the leader's, and writes what it saw; of no steps it does nothing."""

    def __init__(self, steps: int, world: World, times: StepTimes, out: Path) -> None:
        self._left = steps if world.leads else 0
        self._skip, self._seen = SKIPPED, 0
        self._world, self._times, self._out = world, times, out
        self._under_nsys = nsight.begin() and world.on_gpu
        self._profile: profile | None = None
        self._looks = False
        self._began, self._before = 0.0, dict[str, float]()

    def step(self) -> bool:
        """A step is over; returns whether the profiler took time to begin or to write."""
        if self._looks:
            self._seen += 1
            if self._seen >= self._left:
                self.close()
                return True
        elif self._left:
            self._skip -= 1
            if self._skip == 0:
                self._begin()
                return True
        return False

    def _begin(self) -> None:
        self._wait()
        if self._under_nsys:
            torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        else:
            kinds = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * self._world.on_gpu]
            self._profile = profile(activities=kinds)
            self._profile.start()
        self._looks = True
        self._before, self._began = self._times.totals(), time.perf_counter()

    def close(self) -> None:
        """Write what was seen, if anything was; the training may have had fewer steps than were asked for."""
        if not self._looks:
            return
        self._wait()
        wall_s = time.perf_counter() - self._began
        parts = {f"{name}_s": total - self._before[name] for name, total in self._times.totals().items()}
        summary = {"steps": self._seen, "wall_s": wall_s, "parts": parts, **self._end()}
        self._looks, self._left = False, 0
        self._out.mkdir(parents=True, exist_ok=True)
        (self._out / "profile.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")

    def _wait(self) -> None:
        if self._world.on_gpu:
            torch.cuda.synchronize()

    def _end(self) -> dict[str, Any]:
        """Stop to look; what was seen, but for what nsys saw: that is added once it is over."""
        device = torch.cuda.get_device_name() if self._world.on_gpu else "cpu"
        if self._profile is None:
            torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
            return {"device": device}
        self._profile.stop()
        summary = summary_of(kernels(self._profile)) if self._world.on_gpu else of_cpu(self._profile)
        self._profile = None
        return {"device": device, **summary}


def of_cpu(seen: profile) -> dict[str, Any]:
    """The operations of a CPU that took longest."""
    rows = sorted(seen.key_averages(), key=lambda row: -float(row.self_cpu_time_total))
    listed = [{"name": row.key, "seconds": row.self_cpu_time_total * US, "calls": row.count} for row in rows]
    operations = [row for row in listed if row["seconds"] > 0]
    busy = sum(row["seconds"] for row in operations)
    return {"busy_s": busy, "operations": operations[:MAX_OPERATIONS], "gaps": []}


def kernels(seen: profile) -> Iterator[Kernel]:
    """What ran on the GPU itself."""
    events: Any = seen.events()  # type: ignore[no-untyped-call]
    for event in events or ():
        # A range that a program named is shown on the GPU, too, over the kernels it holds.
        if str(event.device_type).endswith("CUDA") and not event.is_user_annotation:
            yield event.time_range.start * US, event.time_range.end * US, event.name
