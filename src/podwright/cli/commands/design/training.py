"""The training half of `predict`: what runs measured, and what other numbers of nodes would make of it."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.design.predict.placement import Placement
    from podwright.design.predict.scaling import Forecast, Measured, Range
    from podwright.runs import RunFolder
    from podwright.runs.series import ToldValue

_BATCH_NAMES = ("global_batch_size", "batch_size", "batch")
_MAX_MARKS = 100_000
"""Steps whose times are compared: the last of a long run."""


@dataclass(frozen=True)
class Source:
    """A run, what it measured, and on how many nodes."""

    run: str
    nodes: int
    measured: Measured


@dataclass(frozen=True)
class TrainingPrediction:
    """Forecasts for several numbers of nodes, the sources they come from, and the bytes reduced in a step."""

    sources: tuple[Source, ...]
    rows: tuple[tuple[int, Forecast], ...]
    gradient_bytes: int | None


def training(placement: Placement, refs: Sequence[str], batch: int | None, gradients: str | None) -> TrainingPrediction:
    """Read the runs and predict doublings of the first one's nodes up to the asked number."""
    from podwright.design.predict.scaling import forecast, forecast_from_two
    from podwright.spec.problems import refuse
    from podwright.spec.quantity import size_bytes

    if batch is not None and batch < 1:
        raise refuse("a batch is a whole positive number", hint="--batch 256")
    sources = tuple(_source(ref, batch) for ref in refs)
    if len(sources) > 1:
        _check_two(sources)
    reduced = size_bytes(gradients) if gradients else None
    first, gpus = sources[0], placement.wires.gpus
    rows = []
    for nodes in _doublings(first.nodes, len(placement.hosts)):
        if len(sources) > 1:
            row = forecast_from_two(first.measured, sources[1].measured, nodes * gpus)
        else:
            times = _all_reduce_s(placement, reduced, (first.nodes, nodes))
            row = forecast(first.measured, nodes * gpus, times)
        rows.append((nodes, row))
    return TrainingPrediction(sources, tuple(rows), reduced)


def lines(prediction: TrainingPrediction) -> Iterator[str]:
    """Lay the forecasts out, 80 columns wide."""
    yield ""
    for source in prediction.sources:
        ranks, nodes = figures.count(source.measured.count, "rank"), figures.count(source.nodes, "node")
        step = f"{source.measured.step_s * 1e3:.3g} ms a step"
        yield from output.aligned("from", f"{source.run}: {step} with {ranks} on {nodes} (measured)", sys.stdout)
    yield ""
    yield from _table(prediction, "local batch kept, the whole batch grows", grows=True)
    yield ""
    yield from _table(prediction, "whole batch kept, the local batch shrinks", grows=False)
    yield ""
    yield from output.aligned("origin", _origin(prediction), sys.stdout)


def as_json(prediction: TrainingPrediction) -> dict[str, Any]:
    """Return the forecasts as data; times are seconds."""
    base = prediction.sources[0].measured
    return {
        "from": [_source_json(source) for source in prediction.sources],
        "nodes": [_forecast_json(nodes, row, base) for nodes, row in prediction.rows],
        "gradient_bytes": prediction.gradient_bytes,
        "origin": {"kind": "modelled", "note": _origin(prediction).replace("\n", " ")},
    }


def _source_json(source: Source) -> dict[str, Any]:
    return {
        "run": source.run,
        "nodes": source.nodes,
        "ranks": source.measured.count,
        "step_s": source.measured.step_s,
        "batch": source.measured.batch,
        "time_to_train_s": source.measured.time_to_train_s,
        "origin": "measured",
    }


def _forecast_json(nodes: int, forecast: Forecast, base: Measured) -> dict[str, Any]:
    same_batch = {
        "step_s": _range_json(forecast.same_batch_step_s),
        "time_to_train_s": _range_json(forecast.same_batch_train_s),
    }
    return {
        "nodes": nodes,
        "gpus": forecast.count,
        "step_s": _range_json(forecast.same_local_step_s),
        "speed_up": _range_json(forecast.speed_up(base)),
        "time_to_train_s": _range_json(forecast.same_local_train_s),
        "same_batch": same_batch,
    }


def _source(ref: str, batch: int | None) -> Source:
    from podwright.design.predict.scaling import Measured, step_from_marks
    from podwright.launch import Session, find
    from podwright.spec.problems import refuse

    with Session.open() as session:
        run = find(session, ref)
        record = run.record()
    step_s = step_from_marks(_marks(_series(run.folder)))
    if step_s is None:
        hint = 'a program reports its steps by a line such as {"podwright": {"step": 120}}'
        raise refuse(f"{run.id} has not reported two steps", hint=hint)
    batches = [record.results[name] for name in _BATCH_NAMES if name in record.results]
    own_batch = next(iter(batches), None)
    measured = Measured(record.world_size or record.nodes, step_s, batch or own_batch, record.time_to_train_s)
    return Source(run.id, record.nodes, measured)


def _series(folder: RunFolder) -> Iterator[ToldValue]:
    """Yield what the ranks told; a series that is damaged is refused in words."""
    from podwright.spec.problems import refuse

    try:
        yield from folder.series()
    except OSError as error:
        raise refuse(f"{folder.id}: {error.strerror or error}") from None


def _marks(values: Iterable[ToldValue]) -> list[tuple[float, float]]:
    """Return the last steps that one rank told in the last attempt, with their times."""
    attempt, rank = (-1, -1), -1
    marks: deque[tuple[float, float]] = deque(maxlen=_MAX_MARKS)
    for value in values:
        if value.name != "step":
            continue
        is_earlier_rank = (value.restart, value.retry) == attempt and value.rank < rank
        if (value.restart, value.retry) > attempt or is_earlier_rank:
            attempt, rank = (value.restart, value.retry), value.rank
            marks.clear()
        if ((value.restart, value.retry), value.rank) == (attempt, rank):
            marks.append((value.t, value.value))
    return list(marks)


def _check_two(sources: Sequence[Source]) -> None:
    from podwright.spec.problems import refuse

    if len(sources) > 2:
        raise refuse("at most two runs can be fitted", hint="give the smallest and the largest")
    if sources[0].measured.count == sources[1].measured.count:
        raise refuse("both runs have the same number of ranks", hint="give two of different sizes")
    silent = [source.run for source in sources if not source.measured.batch]
    if silent:
        raise refuse(f"{silent[0]} has not reported its batch", hint="let the program report `batch`")


def _all_reduce_s(placement: Placement, size_bytes: int | None, nodes: tuple[int, int]) -> tuple[float, float]:
    """Return the modelled all-reduce on the run's number of nodes and on the asked one; 0 when no size is known."""
    from dataclasses import replace

    from podwright.design.predict.collectives import chosen
    from podwright.design.predict.placement import job

    if size_bytes is None:
        return 0.0, 0.0
    whole = job(placement)
    before, after = (chosen(replace(whole, nodes=count), size_bytes).time_s for count in nodes)
    return before, after


def _doublings(first: int, last: int) -> list[int]:
    """Return the doublings from the run's nodes to the asked ones, at most a dozen."""
    if last <= first:
        return [last]
    counts = [first * 2**power for power in range(12) if first * 2**power < last]
    return [*counts, last]


def _table(prediction: TrainingPrediction, title: str, grows: bool) -> list[str]:
    """Lay out one way to use more nodes; the time to train is there when a run reached its goal."""
    base = prediction.sources[0].measured
    head = ["nodes", "gpus", "step ms", "speed-up", "time to train"]
    cells = []
    for nodes, row in prediction.rows:
        if grows:
            step, train, gained = row.same_local_step_s, row.same_local_train_s, row.speed_up(base)
        else:
            step, train = row.same_batch_step_s, row.same_batch_train_s
            gained = _inverse(step, base.step_s)
        cells.append([str(nodes), str(row.count), _range_text(step.scaled(1e3)), _range_text(gained), _times(train)])
    if base.time_to_train_s is None:
        del head[-1]
    return [title, *output.table(head, [row[: len(head)] for row in cells])]


def _inverse(step: Range, base_s: float) -> Range:
    from podwright.design.predict.scaling import Range

    return Range(base_s / step.high, base_s / step.expected, base_s / step.low)


def _range_text(numbers: Range) -> str:
    return f"{numbers.expected:.3g} ({numbers.low:.3g}-{numbers.high:.3g})"


def _times(seconds: Range | None) -> str:
    if seconds is None:
        return "-"
    low, high = (figures.duration(end).replace(" ", "") for end in (seconds.low, seconds.high))
    return f"{figures.duration(seconds.expected)} ({low}-{high})"


def _range_json(numbers: Range | None) -> dict[str, float] | None:
    if numbers is None:
        return None
    return {"low": numbers.low, "expected": numbers.expected, "high": numbers.high}


def _origin(prediction: TrainingPrediction) -> str:
    from podwright.design.predict.scaling import DOUBLING_ERROR, INSIDE_ERROR

    lines = [f"modelled from the measured step; {INSIDE_ERROR * 100:.0f} % either way holds 19 of 20"]
    if len(prediction.sources) > 1:
        lines.append(f"published sizes, with {DOUBLING_ERROR * 100:.0f} % more for each doubling beyond the runs")
    else:
        lines.append("published sizes; one run does not tell the fixed part of a step: its")
        lines.append("published range is used; a second run (--from twice) measures it")
        if prediction.gradient_bytes is None:
            lines.append("communication is taken as hidden: give --gradients 51MB to count it")
    return "\n".join(lines)
