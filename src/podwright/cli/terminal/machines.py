"""What the nodes of a run are at, by their latest readings: each GPU by itself, and the one that lags behind."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podwright.pilot.metrics import is_of

HISTORY = 60
RECENT = 10
"""Readings of a GPU that its use is the mean of: the use at one moment says little."""
STRAGGLES = 20.0
"""Points of use below the middle of all GPUs."""


class GpuView(NamedTuple):
    """One GPU of a node; None is what was not read."""

    node: int
    gpu: str
    use: float | None
    memory_bytes: float | None
    total_bytes: float | None
    power_w: float | None


@dataclass
class NodeView:
    """The latest readings of one node, and the curves of its CPU and GPU use."""

    number: int
    host: str = ""
    values: dict[str, float] = field(default_factory=dict)
    cpu: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    gpu: deque[float] = field(default_factory=lambda: deque(maxlen=HISTORY))
    memory_bytes: float | None = None
    _uses: dict[str, deque[float]] = field(default_factory=dict)
    _totals: dict[str, float] = field(default_factory=dict)

    def begin(self, host: str, memory_bytes: float | None, gpus: Sequence[Mapping[str, Any]]) -> None:
        """Take what its pilot found there."""
        self.host, self.memory_bytes = host, memory_bytes
        for row in gpus:
            if isinstance(row.get("memory_bytes"), (int, float)):
                self._totals[str(row.get("index"))] = float(row["memory_bytes"])

    def take(self, values: Mapping[str, float]) -> None:
        """Take one tick; a value that was not read at this tick keeps its last reading."""
        self.values.update(values)
        if "cpu_percent" in values:
            self.cpu.append(values["cpu_percent"])
        uses = of_gpus(values, "utilization_percent")
        for index, use in uses.items():
            self._uses.setdefault(index, deque(maxlen=RECENT)).append(use)
        if uses:
            self.gpu.append(sum(uses.values()) / len(uses))

    def gpus(self) -> list[GpuView]:
        """Return its GPUs in their order."""
        memory, power = of_gpus(self.values, "memory_used_bytes"), of_gpus(self.values, "power_watts")
        views = []
        for index in sorted({**self._uses, **memory, **power}, key=lambda index: (len(index), index)):
            recent = self._uses.get(index)
            use = sum(recent) / len(recent) if recent else None
            views.append(GpuView(self.number, index, use, memory.get(index), self._totals.get(index), power.get(index)))
        return views

    @property
    def cpu_percent(self) -> float | None:
        """Return the CPU's latest use."""
        return self.cpu[-1] if self.cpu else None

    @property
    def gpu_percent(self) -> float | None:
        """Return the mean use of the node's GPUs at the latest tick."""
        return self.gpu[-1] if self.gpu else None

    @property
    def gpu_power_w(self) -> float | None:
        """Return what all GPUs of the node draw together."""
        power = of_gpus(self.values, "power_watts")
        return sum(power.values()) if power else None

    @property
    def gpu_memory_bytes(self) -> float | None:
        """Return what is used of the memory of all GPUs of the node together."""
        used = of_gpus(self.values, "memory_used_bytes")
        return sum(used.values()) if used else None

    @property
    def memory_total_bytes(self) -> float | None:
        """Return the memory that the run may use on the node."""
        return self.values.get("memory_total_bytes", self.memory_bytes)


def of_gpus(values: Mapping[str, float], metric: str) -> dict[str, float]:
    """Return the readings of a metric by GPU."""
    row = f"gpu.N.{metric}"
    return {name.split(".")[1]: value for name, value in values.items() if is_of(name, row)}


def mean_use(gpus: Sequence[GpuView]) -> float | None:
    """Return the mean use of GPUs; None where none was read."""
    from podwright.analysis.statistics import mean

    return mean([gpu.use for gpu in gpus if gpu.use is not None])


def slowest(gpus: Sequence[GpuView]) -> GpuView | None:
    """Return the GPU that is used least; None where no use was read."""
    return min((gpu for gpu in gpus if gpu.use is not None), key=lambda gpu: gpu.use or 0.0, default=None)


def straggler(gpus: Sequence[GpuView]) -> GpuView | None:
    """Return the GPU that is used much less than the others; None where they are alike, or where it is alone."""
    from podwright.analysis.statistics import median

    last = slowest(gpus)
    middle = median([gpu.use for gpu in gpus if gpu.use is not None and gpu is not last])
    if last is None or last.use is None or middle is None or middle - last.use < STRAGGLES:
        return None
    return last


def fullest(gpus: Sequence[GpuView]) -> GpuView | None:
    """Return the GPU whose memory is used most."""
    read = (gpu for gpu in gpus if gpu.memory_bytes is not None)
    return max(read, key=lambda gpu: gpu.memory_bytes or 0.0, default=None)
