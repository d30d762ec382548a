"""What a run was made of and what was measured of it, so that two runs can be held against each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean, median

from podwright.analysis.settings import Settings, settings_of
from podwright.pilot.metrics import is_of, metric_of
from podwright.pilot.protocol import Epoch
from podwright.runs.events import Event, Sample
from podwright.runs.record import Asked
from podwright.runs.series import ToldValue
from podwright.theme import words

STEPS = ("input_s", "compute_s", "communication_s", "checkpoint_s", "compile_s", "evaluation_s")
"""Where the time of a step goes, as a program may tell it; what it tells sums to the whole."""
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
GOODPUT = "goodput"
_RANK_CPU = "rank.R.cpu_percent"


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

    settings: Settings = field(default_factory=dict)
    measured: Mapping[str, SensorValue] = field(default_factory=dict)
    steps: Mapping[str, float] = field(default_factory=dict)


def traits_of(
    asked: Asked,
    events: Iterable[Event],
    samples: Iterable[Sample],
    series: Iterable[ToldValue],
    goodput: float | None = None,
) -> Traits:
    """Return what is known of a run from its own files, and which share of its time was productive."""
    measured = dict(_measured(samples))
    if goodput is not None:
        measured[GOODPUT] = SensorValue(100 * goodput, "percent")
    return Traits(settings_of(asked, events), measured, _steps(series))


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


class _Spent:
    """Seconds of one part of the steps of one rank: a value is of a step, and stands for all since the one before.

    Without steps it stands for the lines that a thinned series left out. What came before the first value is not known
    of a training that went on: it stands for no more steps than the next one.
    """

    def __init__(self) -> None:
        self._total = 0.0
        self._first: ToldValue | None = None
        self._step: float | None = None

    def add(self, row: ToldValue) -> None:
        """Take the next value in the order of time."""
        if row.step is None:
            self._total += row.value * row.of
            return
        if self._step is None:
            self._first = row
        else:
            since = row.step - self._step
            steps = since if since > 0 else row.of
            self._total += row.value * steps + self._of_first(steps)
            self._first = None
        self._step = row.step

    def seconds(self) -> float:
        """Return what all values come to."""
        return self._total + self._of_first(1)

    def _of_first(self, steps: float) -> float:
        if self._first is None:
            return 0.0
        before = max(self._first.step or 0.0, 0.0) + 1
        return self._first.value * max(self._first.of, min(before, steps))


def _steps(values: Iterable[ToldValue]) -> dict[str, float]:
    """Return the seconds of the last attempt that went into each part of its steps, as the mean of the ranks."""
    totals: dict[Epoch, dict[str, dict[int, _Spent]]] = {}
    for row in values:
        if row.name in STEPS:
            ranks = totals.setdefault((row.restart, row.retry), {}).setdefault(row.name, {})
            ranks.setdefault(row.rank, _Spent()).add(row)
    if not totals:
        return {}
    last = totals[max(totals)]
    return {name: _mean(last[name].values()) for name in STEPS if name in last}


def _mean(ranks: Iterable[_Spent]) -> float:
    return fmean(spent.seconds() for spent in ranks)
