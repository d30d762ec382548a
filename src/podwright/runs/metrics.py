"""The metrics of a sealed run: one Parquet file with a row for each value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from podwright.runs import fields
from podwright.runs.events import Sample
from podwright.runs.files import write_whole

COLUMNS = ("t", "node", "restart", "retry", "name", "value")


def write_metrics(path: Path, samples: Iterable[Sample]) -> None:
    """Write the samples; no file where there is none."""
    rows: list[tuple[float, int, int, int, str, float]] = []
    for sample in samples:
        place = (sample.time, sample.node, *sample.epoch)
        rows += [(*place, name, float(value)) for name, value in sample.values.items()]
    if not rows:
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*rows, strict=True))
    types = (pa.float64(), pa.int32(), pa.int64(), pa.int32(), pa.string(), pa.float64())
    arrays = [pa.array(column, type) for column, type in zip(columns, types, strict=True)]
    arrays[4] = arrays[4].dictionary_encode()
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, names=list(COLUMNS)), sink, compression="zstd")
    write_whole(path, sink.getvalue().to_pybytes())


def read_metrics(path: Path) -> Iterator[Sample]:
    """Yield the samples of a sealed run as the pilots wrote them; a value that is no number is left out."""
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    columns = [table[name].to_pylist() for name in COLUMNS]
    place: tuple[float, int, int, int] | None = None
    values: dict[str, float] = {}
    for t, node, restart, retry, name, value in zip(*columns, strict=True):
        if place != (t, node, restart, retry):
            if place is not None:
                yield _sample(place, values)
            place, values = (t, node, restart, retry), {}
        if fields.number(value) is not None:
            values[name] = value
    if place is not None:
        yield _sample(place, values)


def _sample(place: tuple[float, int, int, int], values: dict[str, float]) -> Sample:
    time, node, restart, retry = place
    return Sample(time, (restart, retry), node, values)
