"""What a run was made of and what was measured of it, so that two runs can be held against each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from podwright.pilot.metrics import is_of, metric_of
from podwright.pilot.protocol import Epoch
from podwright.runs.events import AttemptStarted, Event, PilotStarted, Sample, SoftwareFound
from podwright.runs.record import Asked
from podwright.runs.series import ToldValue
from podwright.spec.hostlist import fold_hosts
from podwright.theme import words

STEPS = ("input_s", "compute_s", "communication_s", "checkpoint_s")
"""Where the time of a step goes, as a program may tell it."""
_GAUGES = {
    "gpu.N.sm_clock_mhz": "GPU clock",
    "gpu.N.memory_clock_mhz": "GPU memory clock",
    "gpu.N.temperature_celsius": "GPU temperature",
    "gpu.N.power_watts": "GPU power",
    "gpu.N.utilization_percent": "GPU utilisation",
    "ib.DEV/PORT.rate_gbps": "InfiniBand link speed",
}
# NVML numbers why clocks are not higher: software power cap, power brake; software and hardware thermal slowdown.
_CAPPED = {"held back by its power cap": 0x4 | 0x80, "held back by heat": 0x20 | 0x40}
CPU_CORES = "CPU cores in use"
"""What the ranks' own processes use. A node's own count is of its control group in a container or a job of Slurm, and
of the whole machine without one: two sides would not be measured alike."""
_RANK_CPU = "rank.R.cpu_percent"
_PACKAGES = ("python", "torch", "cuda", "nccl", "cudnn")
_SETTINGS = ("command", "nodes", "ranks_per_node", "launcher", "runtime", "image", "env", "setup", "resources")


@dataclass(frozen=True)
class SensorValue:
    """A value that sensors gave, with its unit."""

    value: float
    unit: str

    @property
    def text(self) -> str:
        """Return it as people read it."""
        return words.quantity(self.value, self.unit.lower())


@dataclass(frozen=True)
class Traits:
    """One run: what it was given, what sensors saw, and where the time of its steps went as far as it said so."""

    settings: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, SensorValue] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)


def traits_of(asked: Asked, events: Iterable[Event], samples: Iterable[Sample], series: Iterable[ToldValue]) -> Traits:
    """Return what is known of a run from its own files."""
    return Traits(_settings(asked, events), dict(_measured(samples)), _steps(series))


def ingredients(asked: Asked, events: Iterable[Event]) -> dict[str, str]:
    """Return what the runs of one cell must have in common: code, image, data and packages; and the code's commit."""
    image, code = asked.image or {}, asked.code or {}
    rows = {"code": code.get("sha256"), "image": image.get("digest") or image.get("name")}
    rows |= {"commit": code.get("commit"), "folder": code.get("folder")}
    for name, given in (asked.inputs or {}).items():
        rows[f"data {name}"] = given.get("digest") if isinstance(given, dict) else None
    return {name: str(value) for name, value in rows.items() if value} | _packages(events)


def _packages(events: Iterable[Event]) -> dict[str, str]:
    """Return the versions of what the ranks started with; where nodes differ, each once."""
    rows: dict[str, list[str]] = {}
    for event in events:
        for name in _PACKAGES if isinstance(event, SoftwareFound) else ():
            value = getattr(event, name)
            if value and value not in rows.setdefault(name, []):
                rows[name].append(value)
    return {name: " and ".join(sorted(values)) for name, values in rows.items() if values}


def _settings(asked: Asked, events: Iterable[Event]) -> dict[str, str]:
    image, code = asked.image or {}, asked.code or {}
    rows: dict[str, Any] = {
        "target": asked.target,
        "image digest": image.get("digest") or image.get("name"),
        "code": str(code.get("sha256") or "")[:12],
        "podwright": asked.version,
    }
    rows |= {name: asked.workload.get(name) for name in _SETTINGS}
    listed = list(events)
    rows |= _machines(listed) | {f"ranks' {name}": value for name, value in _packages(listed).items()}
    return {name: _text(value) for name, value in rows.items() if value not in (None, "", [], {}, ())}


def _machines(events: Iterable[Event]) -> dict[str, Any]:
    """Return what the pilots found on the nodes; where nodes differ, each value once."""
    rows: dict[str, list[str]] = {}
    hosts: tuple[str, ...] = ()
    for event in events:
        if isinstance(event, AttemptStarted):
            hosts = event.hosts
        if not isinstance(event, PilotStarted):
            continue
        gpus = [str(gpu.get("name")) for gpu in event.gpus]
        kinds = [f"{gpus.count(name)} x {name}" for name in dict.fromkeys(gpus)]
        facts = {
            "kernel": event.kernel,
            "python": event.python,
            "driver": event.driver,
            "CPUs": event.cpus,
            "memory": words.size(event.memory_bytes, ""),
            "GPUs": ", ".join(kinds),
            "network": ", ".join(event.nics),
        }
        for name, value in facts.items():
            if value not in (None, "") and str(value) not in rows.setdefault(name, []):
                rows[name].append(str(value))
    nodes = {"hosts": fold_hosts(sorted(set(hosts)))} if hosts else {}
    return {**nodes, **{name: " and ".join(values) for name, values in rows.items()}}


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={value[name]}" for name in sorted(value))
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)


def _measured(samples: Iterable[Sample]) -> Iterable[tuple[str, SensorValue]]:
    """Yield the middle of each gauge over devices and time, and how much of the time clocks were held back."""
    values: dict[str, list[float]] = {}
    cores: list[float] = []
    for sample in samples:
        for name, value in sample.values.items():
            metric = metric_of(name)
            if metric is not None:
                values.setdefault(metric.name, []).append(value)
        ranks = [value for name, value in sample.values.items() if is_of(name, _RANK_CPU)]
        if ranks:
            cores.append(sum(ranks) / 100)
    if cores:
        yield CPU_CORES, SensorValue(median(cores), "cores")
    for row, title in _GAUGES.items():
        metric = metric_of(row)
        if metric is not None and values.get(row):
            yield title, SensorValue(median(values[row]), metric.unit)
    reasons = values.get("gpu.N.throttle_reasons", [])
    for title, mask in _CAPPED.items():
        if reasons:
            yield title, SensorValue(100 * fmean(bool(int(reason) & mask) for reason in reasons), "percent")


def _steps(values: Iterable[ToldValue]) -> dict[str, float]:
    """Return the seconds of the last attempt that went into each part of its steps, as the mean of the ranks.

    Where a series is thinned, a value stands for so many that are alike.
    """
    totals: dict[Epoch, dict[str, dict[int, float]]] = {}
    for row in values:
        if row.name in STEPS:
            ranks = totals.setdefault((row.restart, row.retry), {}).setdefault(row.name, {})
            ranks[row.rank] = ranks.get(row.rank, 0.0) + row.value * row.of
    if not totals:
        return {}
    last = totals[max(totals)]
    return {name: fmean(last[name].values()) for name in STEPS if name in last}
