"""What a training that runs have measured takes on other numbers of nodes of a pod. Pure: the runs are handed in."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from podwright.design.predict.collectives import CollectiveJob, chosen
from podwright.design.predict.placement import Placement, job
from podwright.design.predict.scaling import (
    DOUBLING_ERROR,
    INSIDE_ERROR,
    Forecast,
    Measured,
    forecast,
    forecast_from_two,
    step_from_marks,
)
from podwright.spec.problems import refuse

_BATCH_NAMES = ("global_batch_size", "batch_size", "batch")
_MAX_MARKS = 100_000
"""Steps whose times are compared: the last of a long run."""


class StepMark(NamedTuple):
    """A step that a rank reported, with its time in seconds; an attempt is the restart and the retry in it."""

    attempt: tuple[int, int]
    rank: int
    t: float
    step: float


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run: its size, the steps that its ranks reported, its results, and its time to its goal."""

    run: str
    nodes: int
    ranks: int
    steps: Iterable[StepMark]
    results: Mapping[str, Any]
    time_to_train_s: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A run, what it measured, and on how many nodes."""

    run: str
    nodes: int
    measured: Measured

    def as_json(self) -> dict[str, Any]:
        """Return it as the document of `predict` lists it."""
        return {
            "run": self.run,
            "nodes": self.nodes,
            "ranks": self.measured.count,
            "step_s": self.measured.step_s,
            "batch": self.measured.batch,
            "time_to_train_s": self.measured.time_to_train_s,
            "origin": "measured",
        }


@dataclass(frozen=True, slots=True)
class TrainingPrediction:
    """Forecasts for several numbers of nodes, the sources they come from, and the bytes reduced in a step."""

    sources: tuple[Source, ...]
    rows: tuple[tuple[int, Forecast], ...]
    gradient_bytes: int | None

    @classmethod
    def of(
        cls, placement: Placement, runs: Iterable[RunFacts], batch: int | None, gradient_bytes: int | None
    ) -> TrainingPrediction:
        """Predict doublings of the first run's nodes up to those of the placement."""
        if batch is not None and batch < 1:
            raise refuse("a batch is a whole positive number", hint="--batch 256")
        sources = tuple(_source(run, batch) for run in runs)
        if len(sources) > 1:
            _check_two(sources)
        first, gpus = sources[0], placement.wires.gpus
        rows = []
        for nodes in _doublings(first.nodes, len(placement.hosts)):
            if len(sources) > 1:
                row = forecast_from_two(first.measured, sources[1].measured, nodes * gpus)
            else:
                times = _all_reduce_s(placement, gradient_bytes, (first.nodes, nodes))
                row = forecast(first.measured, nodes * gpus, times)
            rows.append((nodes, row))
        return cls(sources, tuple(rows), gradient_bytes)

    @property
    def base(self) -> Measured:
        """Return the measurement that speed-ups are against."""
        return self.sources[0].measured

    @property
    def origin(self) -> str:
        """Return what the forecasts rest on, in lines."""
        lines = [f"modelled from the measured step; {INSIDE_ERROR * 100:.0f} % either way holds 19 of 20"]
        if len(self.sources) > 1:
            lines.append(f"published sizes, with {DOUBLING_ERROR * 100:.0f} % more for each doubling beyond the runs")
        else:
            lines.append("published sizes; one run does not tell the fixed part of a step: its")
            lines.append("published range is used; a second run (--from twice) measures it")
            if self.gradient_bytes is None:
                lines.append("communication is taken as hidden: give --gradients 51MB to count it")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """Return the key `training` of the document of `predict`; times are seconds."""
        return {
            "from": [source.as_json() for source in self.sources],
            "nodes": [_forecast_json(nodes, row, self.base) for nodes, row in self.rows],
            "gradient_bytes": self.gradient_bytes,
            "origin": {"kind": "modelled", "note": self.origin.replace("\n", " ")},
        }


def _forecast_json(nodes: int, row: Forecast, base: Measured) -> dict[str, Any]:
    numbers = asdict(row)
    return {
        "nodes": nodes,
        "gpus": row.count,
        "step_s": numbers["same_local_step_s"],
        "speed_up": asdict(row.speed_up(base)),
        "time_to_train_s": numbers["same_local_train_s"],
        "same_batch": {"step_s": numbers["same_batch_step_s"], "time_to_train_s": numbers["same_batch_train_s"]},
    }


def _source(run: RunFacts, batch: int | None) -> Source:
    step_s = step_from_marks(_marks(run.steps))
    if step_s is None:
        hint = 'a program reports its steps by a line such as {"podwright": {"step": 120}}'
        raise refuse(f"{run.run} has not reported two steps", hint=hint)
    own_batch = next((run.results[name] for name in _BATCH_NAMES if name in run.results), None)
    return Source(run.run, run.nodes, Measured(run.ranks, step_s, batch or own_batch, run.time_to_train_s))


def _marks(steps: Iterable[StepMark]) -> list[tuple[float, float]]:
    """Return the last steps that one rank reported in the last attempt, with their times."""
    last, rank = (-1, -1), -1
    marks: deque[tuple[float, float]] = deque(maxlen=_MAX_MARKS)
    for mark in steps:
        if mark.attempt > last or (mark.attempt == last and mark.rank < rank):
            last, rank = mark.attempt, mark.rank
            marks.clear()
        if (mark.attempt, mark.rank) == (last, rank):
            marks.append((mark.t, mark.step))
    return list(marks)


def _check_two(sources: Sequence[Source]) -> None:
    if len(sources) > 2:
        raise refuse("at most two runs can be fitted", hint="give the smallest and the largest")
    if sources[0].measured.count == sources[1].measured.count:
        raise refuse("both runs have the same number of ranks", hint="give two of different sizes")
    silent = [source.run for source in sources if not source.measured.batch]
    if silent:
        raise refuse(f"{silent[0]} has not reported its batch", hint="let the program report `batch`")


def _all_reduce_s(placement: Placement, size_bytes: int | None, nodes: tuple[int, int]) -> tuple[float, float]:
    """Return the modelled all-reduce on the run's number of nodes and on the asked one; 0 when no size is known."""
    if size_bytes is None:
        return 0.0, 0.0
    before, after = (chosen(_job_of(placement, count), size_bytes).time_s for count in nodes)
    return before, after


def _job_of(placement: Placement, nodes: int) -> CollectiveJob:
    """Return the job of some of the nodes, on the wires that all of them have."""
    largest = job(placement)
    if placement.domains:
        return replace(job(placement.first(nodes)), share=largest.share)
    return replace(largest, nodes=nodes)


def _doublings(first: int, last: int) -> list[int]:
    """Return the doublings from the run's nodes to the asked ones, at most a dozen."""
    if last <= first:
        return [last]
    counts = [first * 2**power for power in range(12) if first * 2**power < last]
    return [*counts, last]
