"""The training half of `predict`: what runs measured, and what other numbers of nodes would make of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.design.predict.placement import Placement
    from podwright.design.predict.scaling import Forecast, Measured, Range
    from podwright.runs.events import Event

_BATCH_NAMES = ("global_batch_size", "batch_size", "batch")


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
    """Reads the runs and predicts doublings of the first one's nodes up to the asked number."""
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
            made = forecast_from_two(first.measured, sources[1].measured, nodes * gpus)
        else:
            times = _all_reduce_s(placement, reduced, (first.nodes, nodes))
            made = forecast(first.measured, nodes * gpus, times)
        rows.append((nodes, made))
    return TrainingPrediction(sources, tuple(rows), reduced)


def lines(found: TrainingPrediction) -> Iterator[str]:
    """Lays the forecasts out, 80 columns wide."""
    yield ""
    for source in found.sources:
        one = source.measured
        where = f"{one.count} rank{'s' * (one.count > 1)} on {source.nodes} node{'s' * (source.nodes > 1)}"
        text = f"{source.run}: {one.step_s * 1e3:.3g} ms a step with {where} (measured)"
        yield from output.aligned("from", text, sys.stdout)
    yield ""
    yield from _table(found, "local batch kept, the whole batch grows", grows=True)
    yield ""
    yield from _table(found, "whole batch kept, the local batch shrinks", grows=False)
    yield ""
    yield from output.aligned("origin", _origin(found), sys.stdout)


def as_json(found: TrainingPrediction) -> dict[str, Any]:
    """The forecasts as data; times are seconds."""
    return {
        "from": [
            {
                "run": one.run,
                "nodes": one.nodes,
                "ranks": one.measured.count,
                "step_s": one.measured.step_s,
                "batch": one.measured.batch,
                "time_to_train_s": one.measured.time_to_train_s,
                "origin": "measured",
            }
            for one in found.sources
        ],
        "nodes": [
            {
                "nodes": nodes,
                "gpus": made.count,
                "step_s": _range_json(made.same_local_step_s),
                "speed_up": _range_json(made.speed_up(found.sources[0].measured)),
                "time_to_train_s": _range_json(made.same_local_train_s),
                "same_batch": {
                    "step_s": _range_json(made.same_batch_step_s),
                    "time_to_train_s": _range_json(made.same_batch_train_s),
                },
            }
            for nodes, made in found.rows
        ],
        "gradient_bytes": found.gradient_bytes,
        "origin": {"kind": "modelled", "note": _origin(found).replace("\n", " ")},
    }


def _source(ref: str, batch: int | None) -> Source:
    from podwright import launch
    from podwright.design.predict.scaling import Measured, step_from_marks
    from podwright.launch import Session
    from podwright.spec.problems import refuse

    run = launch.find(Session.open(), ref)
    record = run.record()
    step_s = step_from_marks(_marks(run.folder.events()))
    if step_s is None:
        hint = 'a program tells its steps by a line such as {"podwright": {"step": 120}}'
        raise refuse(f"{run.id} has not told two steps", hint=hint)
    told = next((record.results[name] for name in _BATCH_NAMES if name in record.results), None)
    measured = Measured(record.world_size or record.nodes, step_s, batch or told, record.time_to_train_s)
    return Source(run.id, record.nodes, measured)


def _marks(events: Sequence[Event]) -> list[tuple[float, float]]:
    """The steps that one rank told in the last attempt, with their times."""
    from podwright.runs.events import ResultTold

    results = [event for event in events if isinstance(event, ResultTold) and "step" in event.values]
    if not results:
        return []
    attempt = max(event.epoch for event in results)
    last = [event for event in results if event.epoch == attempt]
    rank = min(event.rank for event in last)
    return [(event.time, event.values["step"]) for event in last if event.rank == rank]


def _check_two(sources: Sequence[Source]) -> None:
    from podwright.spec.problems import refuse

    if len(sources) > 2:
        raise refuse("at most two runs can be fitted", hint="give the smallest and the largest")
    if sources[0].measured.count == sources[1].measured.count:
        raise refuse("both runs have the same number of ranks", hint="give two of different sizes")
    silent = [one.run for one in sources if not one.measured.batch]
    if silent:
        raise refuse(f"{silent[0]} has not told its batch", hint="let the program tell `batch`")


def _all_reduce_s(placement: Placement, size_bytes: int | None, nodes: tuple[int, int]) -> tuple[float, float]:
    """The modelled all-reduce on the run's number of nodes and on the asked one; nothing when no size is known."""
    from dataclasses import replace

    from podwright.design.predict.collectives import chosen
    from podwright.design.predict.placement import job

    if size_bytes is None:
        return 0.0, 0.0
    whole = job(placement)
    before, after = (chosen(replace(whole, nodes=count), size_bytes).time_s for count in nodes)
    return before, after


def _doublings(first: int, last: int) -> list[int]:
    """From the run's nodes to the asked ones, at most a dozen."""
    if last <= first:
        return [last]
    counts = [first * 2**power for power in range(12) if first * 2**power < last]
    return [*counts, last]


def _table(found: TrainingPrediction, title: str, grows: bool) -> list[str]:
    """One way to use more nodes; the time to train is there when a run reached its goal."""
    base = found.sources[0].measured
    head = ["nodes", "gpus", "step ms", "speed-up", "time to train"]
    cells = []
    for nodes, made in found.rows:
        step = made.same_local_step_s if grows else made.same_batch_step_s
        train = made.same_local_train_s if grows else made.same_batch_train_s
        gained = made.speed_up(base) if grows else _inverse(step, base.step_s)
        cells.append([str(nodes), str(made.count), _text(step.scaled(1e3)), _text(gained), _times(train)])
    width = 5 if base.time_to_train_s is not None else 4
    return [title, *output.table(head[:width], [row[:width] for row in cells])]


def _inverse(step: Range, base_s: float) -> Range:
    from podwright.design.predict.scaling import Range

    return Range(base_s / step.high, base_s / step.expected, base_s / step.low)


def _text(found: Range) -> str:
    return f"{found.expected:.3g} ({found.low:.3g}-{found.high:.3g})"


def _times(found: Range | None) -> str:
    if found is None:
        return "-"
    low, high = (figures.duration(one).replace(" ", "") for one in (found.low, found.high))
    return f"{figures.duration(found.expected)} ({low}-{high})"


def _range_json(found: Range | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {"low": found.low, "expected": found.expected, "high": found.high}


def _origin(found: TrainingPrediction) -> str:
    from podwright.design.predict.scaling import INSIDE_ERROR

    lines = [f"modelled from the measured step; {INSIDE_ERROR * 100:.0f} % error on published series"]
    if len(found.sources) > 1:
        lines.append("between the runs, and 10 % more for each doubling beyond them")
    else:
        lines.append("one run does not tell the fixed part of a step: its published range is")
        lines.append("used; a second run of another size (--from twice) measures it")
        if found.gradient_bytes is None:
            lines.append("communication is taken as hidden: give --gradients 51MB to count it")
    return "\n".join(lines)
