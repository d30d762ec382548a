"""Runs as a list that becomes a data frame."""

from __future__ import annotations

from typing import Any

from podwright.launch.run import Run
from podwright.runs.record import TIMES, Record, moment

SHOWN = (
    *("id", "name", "parent", "target", "state", "reason", "user", "team", "nodes", "world_size", "attempts"),
    *("duration_s", "time_to_train_s", "tags", "note"),
)
"""What of a record a data frame of runs has, in this order."""


class RunList(list[Run]):
    """Runs, as `list_runs` gives them."""

    def to_pandas(self) -> Any:
        """Return a data frame with a row for each run; pandas must be installed.

        What was varied has columns `matrix.NAME`, what programs told last `results.NAME`.
        """
        import pandas

        return pandas.DataFrame([_row(run.last_known()) for run in self])


def _row(record: Record) -> dict[str, Any]:
    row = {name: getattr(record, name) for name in SHOWN}
    row |= {name: moment(getattr(record, name)) for name in TIMES}
    row |= {f"matrix.{name}": value for name, value in (record.matrix or {}).items()}
    return row | {f"results.{name}": value for name, value in record.results.items()}
