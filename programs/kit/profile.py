"""A profile of a few steps: which operations took the time, how long the device idled, and what it waited for.

`podwright run --profile` asks for it by PODWRIGHT_PROFILE, the number of steps. The leader writes `profile.json` into
the results; the run's report shows it. To be profiled costs time: such a run is not one to compare with others.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from .timing import StepTimes
from .world import World

SKIPPED = 5
"""Steps before the first that is looked at: they load, compile and choose."""
MOST_OPERATIONS, MOST_GAPS = 15, 5
US = 1e-6


class StepProfile:
    """Looks at so many steps of the leader's, and writes what it saw; of no steps it does nothing."""

    def __init__(self, steps: int, world: World, times: StepTimes, out: Path) -> None:
        self._left = steps if world.leads else 0
        self._skip, self._seen = SKIPPED, 0
        self._world, self._times, self._out = world, times, out
        self._profile: profile | None = None
        self._began, self._before = 0.0, dict[str, float]()

    def step(self) -> None:
        """A step is over."""
        if self._profile is not None:
            self._seen += 1
            if self._seen >= self._left:
                self.close()
        elif self._left:
            self._skip -= 1
            if self._skip == 0:
                self._begin()

    def _begin(self) -> None:
        self._wait()
        kinds = [ProfilerActivity.CPU, *[ProfilerActivity.CUDA] * self._world.on_gpu]
        self._profile = profile(activities=kinds)
        self._profile.start()
        self._before, self._began = self._times.totals(), time.perf_counter()

    def close(self) -> None:
        """Write what was seen, if anything was; the training may have had fewer steps than were asked for."""
        if self._profile is None:
            return
        self._wait()
        wall_s, seen = time.perf_counter() - self._began, self._profile
        seen.stop()
        self._profile, self._left = None, 0
        parts = {f"{name}_s": total - self._before[name] for name, total in self._times.totals().items()}
        summary = {"steps": self._seen, "wall_s": wall_s, "parts": parts, **self._summary(seen)}
        self._out.mkdir(parents=True, exist_ok=True)
        (self._out / "profile.json").write_text(json.dumps(summary, indent=1), encoding="utf-8")

    def _wait(self) -> None:
        if self._world.on_gpu:
            torch.cuda.synchronize()

    def _summary(self, seen: profile) -> dict[str, Any]:
        device = torch.cuda.get_device_name() if self._world.on_gpu else "cpu"
        own = "self_device_time_total" if self._world.on_gpu else "self_cpu_time_total"
        rows = sorted(seen.key_averages(), key=lambda row: -float(getattr(row, own)))
        listed = [{"name": row.key, "seconds": getattr(row, own) * US, "calls": row.count} for row in rows]
        operations = [row for row in listed if row["seconds"] > 0]
        if not self._world.on_gpu:
            busy = sum(row["seconds"] for row in operations)
            return {"device": device, "busy_s": busy, "operations": operations[:MOST_OPERATIONS], "gaps": []}
        busy, gaps = idle(seen)
        return {"device": device, "busy_s": busy, "operations": operations[:MOST_OPERATIONS], "gaps": gaps}


def idle(seen: profile) -> tuple[float, list[dict[str, Any]]]:
    """How long any kernel ran on the GPU, and the longest stretches in which none did, with what was around them."""
    events: Any = seen.events()  # type: ignore[no-untyped-call]
    kernels = [(event.time_range.start, event.time_range.end, event.name) for event in events or () if on_gpu(event)]
    kernels.sort()
    joined: list[tuple[float, float, str, str]] = []  # from, to, the first and the last kernel
    for start, end, name in kernels:
        if joined and start <= joined[-1][1]:
            first, last, head, tail = joined[-1]
            joined[-1] = (first, max(last, end), head, name if end >= last else tail)
        else:
            joined.append((start, end, name, name))
    busy = sum(end - start for start, end, _, _ in joined) * US
    gaps: list[dict[str, Any]] = []
    for before, after in pairwise(joined):
        gaps.append({"seconds": (after[0] - before[1]) * US, "after": before[3], "before": after[2]})
    return busy, sorted(gaps, key=lambda gap: -float(gap["seconds"]))[:MOST_GAPS]


def on_gpu(event: Any) -> bool:
    """Whether an event is work of the GPU itself."""
    return str(event.device_type).endswith("CUDA")
