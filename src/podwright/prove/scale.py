"""How a workload scales: times at several sizes, efficiency with intervals, the fitted law, the prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from podwright.analysis.bootstrap import Interval, interval_of, median_interval, ratio_draws
from podwright.design.predict.scaling import Measured, Range, ScalingPoint, StepLaw, fit, forecast
from podwright.prove.suite_file import SuiteFile
from podwright.prove.suite_folder import Cell
from podwright.prove.suites import SuitePlan, lay_out
from podwright.spec import load_workload
from podwright.spec.problems import refuse

STRONG, WEAK = "strong", "weak"


@dataclass(frozen=True)
class ScaleRequest:
    """A workload at several sizes: the same work on more nodes (strong), or work that grows with them (weak)."""

    workload: Path
    sizes: tuple[int, ...] = (1, 2, 4)
    kind: str = STRONG
    repeats: int = 5
    on: str = "local"


def plan_scaling(request: ScaleRequest) -> SuitePlan:
    """Return the suite that measures a workload at several sizes."""
    path, target = request.workload, request.on.replace(":", "-")
    name = f"scale-{request.kind}-{target}-{load_workload(path).name}"[:40]
    sizes = tuple(sorted(set(request.sizes)))
    suite = SuiteFile(name=name, workloads=(path.name,), targets=(request.on,), sizes=sizes, repeats=request.repeats)
    return lay_out(suite, path)


@dataclass(frozen=True)
class SizeMeasured:
    """One size: its samples, how well the nodes are used, and what law and prediction say of it."""

    size: int
    samples: tuple[float, ...]
    efficiency: float
    interval: Interval | None
    fitted_s: float | None
    predicted: Range
    """From the smallest size alone, before any larger one was measured."""

    @property
    def median_s(self) -> float:
        """Return the time in the middle."""
        return median(self.samples)

    def as_json(self) -> dict[str, Any]:
        """Return the row of `bench scale`."""
        return {
            "size": self.size,
            "n": len(self.samples),
            "median_s": self.median_s,
            "interval": median_interval(self.samples),
            "efficiency": self.efficiency,
            "efficiency_interval": self.interval,
            "fitted_s": self.fitted_s,
            "predicted_s": asdict(self.predicted),
        }


@dataclass(frozen=True)
class ScalingCurve:
    """The sizes of one workload on one target, smallest first."""

    workload: str
    target: str
    kind: str
    sizes: tuple[SizeMeasured, ...]
    law: StepLaw | None

    @property
    def contradicted(self) -> tuple[SizeMeasured, SizeMeasured] | None:
        """Return the first size that is not what the smallest told, behind the last that was; None where all were."""
        for before, after in pairwise(self.sizes):
            if not after.predicted.low <= after.median_s <= after.predicted.high:
                return before, after
        return None

    @property
    def no_prediction_beyond(self) -> int | None:
        """Return the size beyond which the curve contradicts the law; None where it does not."""
        return None if self.contradicted is None else self.contradicted[0].size

    def as_json(self) -> dict[str, Any]:
        """Return the document of `bench scale`."""
        rows = [size.as_json() for size in self.sizes]
        more = {"no_prediction_beyond": self.no_prediction_beyond}
        return {"workload": self.workload, "target": self.target, "kind": self.kind, "sizes": rows, **more}


def scaling_curve(cells: Sequence[Cell], kind: str, metric: str = "duration_s") -> ScalingCurve:
    """Return the curve of cells that differ in size alone; refuse where none has samples.

    The law is fitted to the smallest and the largest size. Strong: the same work on more nodes. Weak: the same work on
    each node.
    """
    ordered = sorted((cell for cell in cells if cell.values(metric)), key=lambda cell: cell.key.size)
    if not ordered:
        hint = "`podwright ps` shows the runs, `podwright show RUN` what they reported"
        raise refuse(f"no run has succeeded and reported {metric}", hint=hint, exit_code=1)
    times = {cell.key.size: cell.values(metric) for cell in ordered}
    smallest, largest = ordered[0].key.size, ordered[-1].key.size
    law = None
    if largest > smallest:
        ends = [_point(size, median(times[size]), kind) for size in (smallest, largest)]
        law = fit(ends[0], ends[1])
    sizes = tuple(_size(size, times, kind, law) for size in times)
    return ScalingCurve(ordered[0].key.workload, ordered[0].key.target, kind, sizes, law)


def _batch(size: int, kind: str) -> float:
    """Return the work in all, in units of what the smallest measure has: it grows with the nodes or it does not."""
    return float(size) if kind == WEAK else 1.0


def _point(size: int, time_s: float, kind: str) -> ScalingPoint:
    batch = _batch(size, kind)
    return ScalingPoint(size, time_s, batch, batch)


def _size(size: int, times: dict[int, list[float]], kind: str, law: StepLaw | None) -> SizeMeasured:
    smallest = min(times)
    base, own = times[smallest], times[size]
    gain = 1.0 if kind == WEAK else smallest / size
    interval = None
    if min(len(base), len(own)) > 1 and size != smallest:
        low, high = interval_of(ratio_draws(base, own), 0.95)
        interval = gain / high, gain / low
    row = forecast(Measured(smallest, median(base)), size, (0.0, 0.0))
    return SizeMeasured(
        size=size,
        samples=tuple(own),
        efficiency=gain * median(base) / median(own),
        interval=interval,
        fitted_s=None if law is None else law.step_s(size, _batch(size, kind)),
        predicted=row.same_local_step_s if kind == WEAK else row.same_batch_step_s,
    )
