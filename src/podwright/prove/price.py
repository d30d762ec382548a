"""What more proof takes: runs, their time one after the other, and money where prices are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from podwright.analysis.statistics import as_number
from podwright.runs import Record

RunCost = tuple[float | None, str]
"""The amount, None where it is not known, and its currency."""


@dataclass(frozen=True)
class ProofPrice:
    """What the next look takes at most."""

    runs: int
    seconds: float
    amount: float | None
    currency: str


def no_price(price: ProofPrice) -> None:
    """Say nothing."""


def cost_of_record(record: Record) -> RunCost:
    """Return what a run cost by its record."""
    cost = record.cost or {}
    return as_number(cost.get("amount")), str(cost.get("currency") or "")


def priced(runs: int, seconds: float, costs: Sequence[RunCost]) -> ProofPrice:
    """Return what so many runs take by what others cost; without a price where one of those has none."""
    amounts = [amount for amount, _ in costs if amount is not None]
    currency = next((currency for amount, currency in costs if amount is not None), "")
    is_known = bool(amounts) and len(amounts) == len(costs)
    return ProofPrice(runs, seconds, fmean(amounts) * runs if is_known else None, currency)
