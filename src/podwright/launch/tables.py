"""What a run told and what its sensors read, as lists that become tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from podwright.runs.events import Sample
from podwright.runs.record import moment
from podwright.runs.series import ToldValue

if TYPE_CHECKING:
    import pyarrow

COUNTERS = frozenset({"step", "steps", "epoch", "epochs"})


class ToldSeries(list[ToldValue]):
    """Every value that ranks told."""

    def to_arrow(self) -> pyarrow.Table:
        """Return a table with the columns of `ToldValue`."""
        return _table(ToldValue._fields, self)

    def to_pandas(self) -> Any:
        """Return a data frame with times as datetimes and the step as a column; pandas must be installed.

        `attempt` counts from 1; rows that say no more than the step, or how far it is, are left out.
        """
        attempts = sorted({value[2:4] for value in self})
        number = {attempt: place for place, attempt in enumerate(attempts, 1)}
        rows = [
            (
                moment(value.t),
                value.node,
                value.rank,
                number[value[2:4]],
                value.step,
                value.epoch,
                value.name,
                value.value,
            )
            for value in self
            if value.name not in COUNTERS
        ]
        return _table(("time", "node", "rank", "attempt", "step", "epoch", "name", "value"), rows).to_pandas()


class SensorSamples(list[Sample]):
    """Every reading of the sensors, node by node."""

    def to_arrow(self) -> pyarrow.Table:
        """Return a table with a row for each metric of each reading."""
        return _table(("t", "node", "restart", "retry", "name", "value"), self._rows())

    def to_pandas(self) -> Any:
        """Return the same as a data frame, times as datetimes; pandas must be installed."""
        frame = self.to_arrow().to_pandas()
        frame.insert(0, "time", [moment(t) for t in frame.pop("t")])
        return frame

    def _rows(self) -> Iterable[tuple[Any, ...]]:
        for sample in self:
            restart, retry = sample.epoch
            for name, value in sample.values.items():
                yield (sample.time, sample.node, restart, retry, name, value)


def _table(names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> pyarrow.Table:
    import pyarrow

    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    return pyarrow.table(dict(zip(names, columns, strict=True)))
