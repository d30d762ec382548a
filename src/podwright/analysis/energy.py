"""The energy of a run from its own samples: counters where there are some, else power over time. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from podwright.analysis.statistics import known_sum
from podwright.pilot.metrics import is_of
from podwright.runs.events import Sample

JOULES_A_KWH = 3.6e6
LONGEST_GAP_S = 60.0
"""Between two samples of power; what lies in a longer gap is not known and not counted."""


@dataclass(frozen=True)
class Energy:
    """Kilowatt hours of GPUs and of CPU packages; None where no sensor gave them."""

    gpu_kwh: float | None
    cpu_kwh: float | None

    @property
    def kwh(self) -> float | None:
        """Return all that was measured."""
        return known_sum((self.gpu_kwh, self.cpu_kwh))

    @property
    def origin(self) -> str:
        """Return what was measured, in words."""
        parts = {"GPUs": self.gpu_kwh, "CPUs": self.cpu_kwh}
        return f"measured: {' and '.join(name for name, part in parts.items() if part is not None)}"


def energy_of(samples: Iterable[Sample], machines: dict[int, str] | None = None) -> Energy:
    """Return the energy of a run; nodes that share a machine (`machines`: node to host) count its CPUs once."""
    counters: dict[tuple[str, str], list[float]] = {}
    powers: dict[tuple[str, str], list[tuple[float, float]]] = {}
    hosts = machines or {}
    for sample in samples:
        for name, value in sample.values.items():
            if is_of(name, "gpu.N.energy_joules_total"):
                counters.setdefault((f"{sample.node}", name), []).append(value)
            elif is_of(name, "cpu_energy_joules_total"):
                counters.setdefault((hosts.get(sample.node, f"{sample.node}"), "cpu"), []).append(value)
            elif is_of(name, "gpu.N.power_watts"):
                powers.setdefault((f"{sample.node}", name), []).append((sample.time, value))
    gpu = _counted(counters, "gpu.")
    if gpu is None and powers:
        gpu = sum(_under(points) for points in powers.values()) / JOULES_A_KWH
    return Energy(gpu, _counted(counters, "cpu"))


def _counted(counters: dict[tuple[str, str], list[float]], start: str) -> float | None:
    """Return what counters grew by; one that was read only once says nothing."""
    grown = [
        max(values) - min(values) for (_, name), values in counters.items() if name.startswith(start) and values[1:]
    ]
    if not grown:
        return None
    return sum(grown) / JOULES_A_KWH


def _under(points: list[tuple[float, float]]) -> float:
    """Return the joules under a curve of power."""
    ordered, joules = sorted(points), 0.0
    for (before, low), (after, high) in pairwise(ordered):
        if after - before <= LONGEST_GAP_S:
            joules += (after - before) * (low + high) / 2
    return joules
