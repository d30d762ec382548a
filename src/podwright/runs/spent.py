"""What pages ask of the index: what runs cost and came to, added up, and which of them a host took part in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from podwright.runs.record import Record, from_row

Told = TypeVar("Told")
CLASS = "class"
"""Instead of a field: by the classes of goodput, among which a run's cost is dealt out as its time was."""
_RUNS = " WHERE runs.created_at >= ? AND +runs.parent IS NULL"
_BY_FIELD = (
    "SELECT json_extract(record, '$.' || ?) AS name, json_extract(record, '$.cost.currency') AS currency,"
    f" count(*), sum(json_extract(record, '$.cost.amount')) FROM runs{_RUNS} GROUP BY name, currency"
)
_BY_CLASS = (
    "SELECT part.key, json_extract(record, '$.cost.currency') AS currency, count(*),"
    " sum(json_extract(record, '$.cost.amount') * part.value / json_extract(record, '$.goodput.allocated_s'))"
    f" FROM runs, json_each(runs.record, '$.goodput.classes') AS part{_RUNS}"
    " AND part.value > 0 AND json_extract(record, '$.goodput.allocated_s') > 0 GROUP BY part.key, currency"
)
_ON_HOST = """
SELECT record FROM (SELECT record, created_at, id FROM runs ORDER BY created_at DESC LIMIT 10000) AS newest
WHERE EXISTS (SELECT 1 FROM json_each(newest.record, '$.hosts') WHERE value = ?)
ORDER BY newest.created_at DESC, newest.id LIMIT ?
"""
"""Of the newest ten thousand: a host that never runs anything would have all of them read."""


@dataclass(frozen=True)
class IndexQuestion(Generic[Told]):
    """A query of the index, what is put into it, and how a row of its answer is read."""

    query: str
    values: tuple[object, ...]
    read: Callable[[tuple[Any, ...]], Told]


@dataclass(frozen=True)
class SpentRow:
    """Runs that have one name, such as a user's, and one currency; of runs without a price neither of the last two."""

    name: str | None
    currency: str | None
    runs: int
    amount: float | None


def spent_since(since: float, by: str) -> IndexQuestion[SpentRow]:
    """Ask what runs created since then cost, points apart, by a field of theirs or by the classes of their time."""
    if by == CLASS:
        return IndexQuestion(_BY_CLASS, (since,), _spent)
    return IndexQuestion(_BY_FIELD, (by, since), _spent)


def _spent(row: tuple[Any, ...]) -> SpentRow:
    name, currency, runs, amount = row
    text = None if name is None else str(name)
    return SpentRow(text, currency, int(runs), None if amount is None else float(amount))


def runs_on_host(host: str, most: int) -> IndexQuestion[Record]:
    """Ask for the newest runs that a host took part in."""
    return IndexQuestion(_ON_HOST, (host, most), _record)


def _record(row: tuple[Any, ...]) -> Record:
    return from_row(json.loads(row[0]))
