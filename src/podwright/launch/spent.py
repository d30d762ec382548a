"""What the runs of a home cost: by team, user, workload and target, and what of it was not productive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from podwright.runs.record import iso
from podwright.runs.spent import CLASS, SpentRow, spent_since

if TYPE_CHECKING:
    from podwright.launch.session import Session

SPENT_BY = ("team", "user", "name", "target", "state", CLASS)
"""What spending is divided by: fields of records, and the classes of goodput."""
_PRODUCTIVE = "productive"


@dataclass(frozen=True)
class RunsSpent:
    """Spending since a time, divided in several ways; each has all of it, as far as it is known."""

    since: float
    by: Mapping[str, Sequence[SpentRow]]

    @property
    def totals(self) -> dict[str, float]:
        """Return what all runs cost, by currency."""
        sums: dict[str, float] = {}
        for row in self.by["state"]:
            if row.currency is not None and row.amount is not None:
                sums[row.currency] = sums.get(row.currency, 0.0) + row.amount
        return sums

    @property
    def without_price(self) -> int:
        """Return how many runs have no cost, such as those that are not over."""
        return sum(row.runs for row in self.by["state"] if row.amount is None)

    def unproductive(self, currency: str) -> float | None:
        """Return what was paid for time in which no step was made that counts; None where no time is divided up."""
        rows = [row for row in self.by[CLASS] if row.currency == currency and row.amount is not None]
        if not rows:
            return None
        return sum(row.amount or 0.0 for row in rows if row.name != _PRODUCTIVE)

    def as_json(self) -> dict[str, Any]:
        """Return it as an API has it."""
        rows = {name: list(map(asdict, rows)) for name, rows in self.by.items()}
        return {"since": iso(self.since), "totals": self.totals, "without_price": self.without_price, "by": rows}


def spent_on_runs(session: Session, since: float) -> RunsSpent:
    """Add up what runs created since then cost, the most first; a sweep or repeat counts as one run."""
    session.home.sync()
    index = session.home.index
    return RunsSpent(since, {by: sorted(index.answer(spent_since(since, by)), key=_most_first) for by in SPENT_BY})


def _most_first(row: SpentRow) -> tuple[float, str]:
    return -(row.amount or 0.0), row.name or ""
