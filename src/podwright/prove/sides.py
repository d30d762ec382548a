"""A side of a comparison as a user names it: a run, a cell of a suite, or a file of samples."""

from __future__ import annotations

import json
import math
import re
import time
from dataclasses import dataclass
from pathlib import Path

from podwright.analysis.comparison import MARGIN
from podwright.analysis.statistics import as_number
from podwright.analysis.traits import Traits, traits_of
from podwright.launch import Session, find
from podwright.prove.suite_folder import Cell, find_cell
from podwright.runs import Fold, Record, RunFolder
from podwright.spec.problems import Refusal, refuse, short
from podwright.spec.source import decode, read_source

_OF_IDS = "abcdefghijklmnopqrstuvwxyz0123456789-"
"""What an id of a run is made of: a name of these alone is never a file's."""
_IS_KNOWN = re.compile(r"[a-z0-9-]{1,64}(@\d{1,6})?(/[\w.:@+-]{1,200}){0,5}", re.ASCII)
_TIMES = ("duration_s", "time_to_train_s")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%", re.ASCII)


@dataclass(frozen=True)
class Measure:
    """What is measured, and how far apart is still the same."""

    metric: str = "duration_s"
    margin: float = MARGIN


DURATION = Measure()


def margin_of(text: str) -> float:
    """Return the share that `3%` means."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        hint = f"did you mean `{text.strip()}%`?" if text.strip().isdecimal() else "write it like `3%`"
        raise refuse(f'"{short(text)}" is not a margin', hint=hint, field="--margin")
    share = float(match[1]) / 100
    if not 0 < share < 1:
        raise refuse("must be more than 0% and less than 100%", hint="3% is usual", field="--margin")
    return share


@dataclass(frozen=True)
class Side:
    """The samples of one side, what is known of the runs behind them, and what did not count."""

    name: str
    samples: tuple[float, ...]
    traits: tuple[Traits, ...] = ()
    left_out: str = ""
    cell: Cell | None = None
    run: str | None = None
    """The run that was named: it can be started again."""
    added: tuple[str, ...] = ()
    """Runs that were started to decide a comparison."""
    began: tuple[float, ...] = ()
    """When the runs behind the samples were started, sample by sample; nothing of a file."""
    runs: tuple[str, ...] = ()


def side_of(session: Session, ref: str, metric: str = DURATION.metric, files: bool = True) -> Side:
    """Return the side that a user means; refuse what has no samples that could be compared.

    Without `files` no file of this machine is opened: whoever asks may have no business with these.
    """
    if not files and not _IS_KNOWN.fullmatch(ref):
        raise refuse(f"{short(ref)!r} is neither a run nor a cell", hint="name a run, or SUITE/CELL", exit_code=1)
    if not files:
        return (_from_cell if "/" in ref else _from_run)(session, ref, metric)
    if ref.endswith(".json") or (ref.strip(_OF_IDS) and Path(ref).is_file()):
        return _from_file(Path(ref))
    if "/" in ref:
        return _from_cell(session, ref, metric)
    return _from_run(session, ref, metric)


def _from_file(path: Path) -> Side:
    text = decode(read_source(path), str(path))
    try:
        document = json.loads(text)
    except ValueError as error:
        raise refuse(f"is not JSON: {error}", hint='write {"samples": [61.2, 60.8]}', file=str(path)) from None
    samples = document.get("samples") if isinstance(document, dict) else None
    if not isinstance(samples, list) or not samples:
        raise refuse("has no samples", hint='write {"samples": [61.2, 60.8]}', file=str(path), field="samples")
    values = [as_number(sample) for sample in samples]
    wrong = [index for index, value in enumerate(values) if value is None or value <= 0]
    if wrong:
        field, seen = f"samples[{wrong[0]}]", short(json.dumps(samples[wrong[0]]))
        raise refuse(f"{seen} is no positive number", hint="samples are times or rates", file=str(path), field=field)
    return Side(path.stem, tuple(value for value in values if value is not None))


def _from_cell(session: Session, ref: str, metric: str) -> Side:
    return side_of_cell(session, find_cell(session.home, ref), metric)


def side_of_cell(session: Session, cell: Cell, metric: str) -> Side:
    """Return the side that a cell is; refuse one of several kinds of code, or without samples."""
    cell.check_pure()
    rows = zip(cell.values(metric), cell.began(metric), strict=True)
    good = [(sample, began) for sample, began in rows if math.isfinite(sample) and sample > 0]
    samples, began = [sample for sample, _ in good], tuple(began for _, began in good)
    if not samples:
        names = ", ".join(cell.metrics()) or "none yet"
        raise refuse(f"{cell.name} has no samples of {metric}", hint=f"its metrics are {names}", field="--metric")
    left_out = ""
    if cell.failed:
        left_out = f"{cell.failed} that did not succeed"
    traits, runs = cell_traits(session, cell), tuple(cell.runs)
    return Side(cell.name, tuple(samples), traits, left_out, cell, began=began, runs=runs)


def cell_traits(session: Session, cell: Cell) -> tuple[Traits, ...]:
    """Return what is known of a cell's runs that are still there: a suite outlives them."""
    folders = [session.home.folder(run) for run in cell.runs if session.home.has(run)]
    return tuple(map(folder_traits, folders))


def folder_traits(folder: RunFolder) -> Traits:
    """Return what a run's folder says of it; what cannot be read says nothing."""
    try:
        fold = Fold(folder.asked, str(folder.path))
        fold.take(folder.events())
        goodput = (fold.record(time.time()).goodput or {}).get("share")
        return traits_of(folder.asked, folder.events(), folder.samples(), folder.series(), goodput)
    except (Refusal, OSError, ValueError):
        return Traits()


def _from_run(session: Session, ref: str, metric: str) -> Side:
    run = find(session, ref)
    record, points = run.records()
    records = points or [record]
    if any(record.matrix for record in records):
        hint = "compare runs that were started with --repeat, or cells of a suite"
        raise refuse(f"{run.id} has points of a matrix, which differ on purpose", hint=hint)
    good = [record for record in records if record.state == "succeeded"]
    if not good:
        raise refuse(f"no run of {run.id} has succeeded", hint=f"podwright show {run.id}")
    samples = [_value(record, metric) for record in good]
    left_out = ""
    if len(good) < len(records):
        left_out = f"{len(records) - len(good)} that did not succeed"
    traits = tuple(folder_traits(session.home.folder(record.id)) for record in good)
    began = tuple(record.started_at or 0.0 for record in good)
    runs = tuple(record.id for record in good)
    return Side(run.id, tuple(samples), traits, left_out, run=run.id, began=began, runs=runs)


def values_of(record: Record) -> dict[str, float]:
    """Return what a run has that can be compared: what its program told, and its times."""
    times = {name: getattr(record, name) for name in _TIMES}
    return record.results | {name: value for name, value in times.items() if value is not None}


def _value(record: Record, metric: str) -> float:
    values = values_of(record)
    value = as_number(values.get(metric))
    if value is None:
        names = sorted(values, key=lambda name: (name not in _TIMES, name))
        raise refuse(f"{record.id} has no {metric}", hint=f"it has {', '.join(names)}", field="--metric")
    if value <= 0:
        raise refuse(f"{metric} of {record.id} is {value:g}, and a ratio needs more than zero", field="--metric")
    return value
