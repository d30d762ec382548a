"""The training half of `predict`: what runs measured, and what other numbers of nodes would make of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from podwright import design, launch
from podwright.cli.terminal import figures, output
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.design import Range, RunFacts, StepMark, TrainingPrediction
    from podwright.launch import Run


def facts_of(refs: Sequence[str]) -> Iterator[RunFacts]:
    """Yield what is known of each run, as it is asked for."""
    for ref in refs:
        with launch.Session.open() as session:
            run = launch.find(session, ref)
            record = run.record()
        ranks, reached_s = record.world_size or record.nodes, record.time_to_train_s
        yield design.RunFacts(run.id, record.nodes, ranks, _steps(run), record.results, reached_s)


def _steps(run: Run) -> Iterator[StepMark]:
    """Yield the steps that ranks reported; a series that is damaged is refused in words."""
    try:
        for value in run.folder.series():
            if value.name == "step":
                yield design.StepMark((value.restart, value.retry), value.rank, value.t, value.value)
    except OSError as error:
        raise refuse(f"{run.id}: {error.strerror or error}") from None


def training_lines(prediction: TrainingPrediction) -> Iterator[str]:
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
    yield from output.aligned("origin", prediction.origin, sys.stdout)


def _table(prediction: TrainingPrediction, title: str, grows: bool) -> list[str]:
    """Lay out one way to use more nodes; the time to train is there when a run reached its goal."""
    base = prediction.base
    head = ["nodes", "gpus", "step ms", "speed-up", "time to train"]
    cells = []
    for nodes, row in prediction.rows:
        if grows:
            step, train, gained = row.same_local_step_s, row.same_local_train_s, row.speed_up(base)
        else:
            step, train = row.same_batch_step_s, row.same_batch_train_s
            gained = step.inverse(base.step_s)
        cells.append([str(nodes), str(row.count), _range_text(step.scaled(1e3)), _range_text(gained), _times(train)])
    if base.time_to_train_s is None:
        del head[-1]
    return [title, *output.table(head, [row[: len(head)] for row in cells])]


def _range_text(numbers: Range) -> str:
    return f"{numbers.expected:.3g} ({numbers.low:.3g}-{numbers.high:.3g})"


def _times(seconds: Range | None) -> str:
    if seconds is None:
        return "-"
    low, high = (figures.duration(end).replace(" ", "") for end in (seconds.low, seconds.high))
    return f"{figures.duration(seconds.expected)} ({low}-{high})"
