"""The metrics of a sealed run: one Parquet file with a row for each value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from podwright.runs import fields
from podwright.runs.events import Sample
from podwright.runs.parquet import Column, read_rows, write_rows

METRICS_FILE = "metrics.parquet"
COLUMNS = (
    Column("t", "float64"),
    Column("node", "int32"),
    Column("restart", "int64"),
    Column("retry", "int32"),
    Column("name", "string"),
    Column("value", "float64"),
)
Place = tuple[float, int, int, int]


def write_metrics(path: Path, samples: Iterable[Sample]) -> None:
    """Write the samples as they come; no file where there is none."""
    write_rows(path, COLUMNS, _rows(samples))


def _rows(samples: Iterable[Sample]) -> Iterator[tuple[float, int, int, int, str, float]]:
    for sample in samples:
        for name, value in sample.values.items():
            yield (sample.time, sample.node, *sample.epoch, name, float(value))


def read_metrics(path: Path) -> Iterator[Sample]:
    """Yield the samples of a sealed run as the pilots wrote them; what is no number is left out.

    `Unreadable` says in words what is wrong with a damaged file.
    """
    place: Place | None = None
    values: dict[str, float] = {}
    for t, node, restart, retry, name, value in read_rows(path, COLUMNS):
        if place != (t, node, restart, retry):
            if place is not None:
                yield _sample(place, values)
            place, values = _place(t, node, restart, retry), {}
        values[name] = value
    if place is not None:
        yield _sample(place, values)


def _place(t: object, node: object, restart: object, retry: object) -> Place | None:
    time, number, epoch = fields.moment(t), fields.node(node), fields.epoch([restart, retry])
    if time is None or number is None or epoch is None:
        return None
    return time, number, *epoch


def _sample(place: Place, values: dict[str, float]) -> Sample:
    time, node, restart, retry = place
    return Sample(time, (restart, retry), node, values)
