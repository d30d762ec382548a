"""What the teams of a pod spent this month beside their budgets, and what that comes to at its end. Pure.

A run is paid for evenly over the time that it held its nodes, so that one that began last month counts with its part.
The forecast goes on at this month's pace; its interval is that of its own days, and of too few days there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from podwright.analysis.statistics import as_number, squares
from podwright.analysis.student import reach_of
from podwright.costs.ranges import Range
from podwright.spec import Pod

DAY_S = 86400.0
MIN_DAYS = 3
"""Whole days of the month before anything is said about its end."""
SURE = 0.9
UNASSIGNED = "unassigned"


@dataclass(frozen=True)
class Charge:
    """A run, the team that it is on the bill of, when it held its nodes, and its cost as records have it."""

    team: str | None
    began: float
    ended: float
    cost: Mapping[str, Any] | None


@dataclass(frozen=True)
class TeamSpending:
    """One team's month; what is not known is None."""

    team: str
    budget: float | None
    spent: float
    spent_range: Range | None
    forecast: float | None
    forecast_range: Range | None
    runs: int
    without_price: int
    """Runs without a cost, or with one in another currency: what was spent is at least that much."""

    @property
    def state(self) -> str:
        """Return how it stands to its budget, in words."""
        if self.budget is None:
            return "no budget"
        if self.spent > self.budget:
            return "over"
        if self.forecast is None:
            return "too early to say"
        if self.forecast > self.budget:
            return "will be over"
        if self.forecast_range is not None and self.forecast_range[1] > self.budget:
            return "may be over"
        return "within"

    def as_json(self) -> dict[str, Any]:
        """Return it as `cost pod` lists it."""
        return {**asdict(self), "at_least": bool(self.without_price), "state": self.state}


@dataclass(frozen=True)
class Month:
    """A month by its first second and its last, and how far it has come; UTC, as all records are."""

    began: float
    ended: float
    now: float

    @classmethod
    def of(cls, now: float) -> Month:
        """Return the month of a time."""
        first = datetime.fromtimestamp(now, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        after = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
        return cls(first.timestamp(), after.timestamp(), now)

    @property
    def name(self) -> str:
        """Return it as `2026-11`."""
        return f"{datetime.fromtimestamp(self.began, UTC):%Y-%m}"

    @property
    def days(self) -> float:
        """Return how many days of it are over."""
        return (self.now - self.began) / DAY_S

    @property
    def days_left(self) -> float:
        """Return how many are still to come."""
        return (self.ended - self.now) / DAY_S

    def share_of(self, charge: Charge, first_day: float = 0.0, last_day: float = math.inf) -> float:
        """Return which share of a run's time lies between two days of it, counted from its first."""
        low = self.began + first_day * DAY_S
        high = min(self.began + last_day * DAY_S, self.now)
        if charge.ended <= charge.began:
            return float(low <= charge.ended < high)
        return max(0.0, min(charge.ended, high) - max(charge.began, low)) / (charge.ended - charge.began)


@dataclass(frozen=True)
class Spending:
    """The month of all teams; runs of people who are in none are the last line."""

    month: Month
    currency: str
    teams: tuple[TeamSpending, ...]

    def as_json(self) -> dict[str, Any]:
        """Return what `cost pod` says of teams."""
        rows = [row.as_json() for row in self.teams]
        return {"month": self.month.name, "month_days": self.month.days, "teams": rows}


def spending(pod: Pod, charges: Iterable[Charge], now: float) -> Spending:
    """Return what each team spent this month, those of the file first, then whoever else has a run."""
    month = Month.of(now)
    found: dict[str, list[Charge]] = {team.name: [] for team in pod.teams}
    others: list[Charge] = []
    for charge in charges:
        if month.share_of(charge):
            found.get(charge.team or "", others).append(charge)
    budgets = {team.name: team.budget for team in pod.teams}
    rows = [_team(name, budgets[name], own, (month, pod.costs.currency)) for name, own in found.items()]
    if others:
        rows.append(_team(UNASSIGNED, None, others, (month, pod.costs.currency)))
    return Spending(month, pod.costs.currency, tuple(rows))


def _team(name: str, budget: float | None, charges: Sequence[Charge], terms: tuple[Month, str]) -> TeamSpending:
    month, currency = terms
    priced = [charge for charge in charges if charge.cost and charge.cost.get("currency") == currency]
    low, spent, high = (_sum_at(end, priced, month) for end in range(3))
    forecast = _forecast(spent, [*_whole_days(priced, month)], month)
    return TeamSpending(
        team=name,
        budget=budget,
        spent=spent,
        spent_range=(low, high) if low != high else None,
        forecast=forecast[0] if forecast else None,
        forecast_range=forecast[1] if forecast else None,
        runs=len(charges),
        without_price=len(charges) - len(priced),
    )


def _sum_at(end: int, charges: Sequence[Charge], month: Month) -> float:
    return sum(_amount(charge, end) * month.share_of(charge) for charge in charges)


def _amount(charge: Charge, end: int = 1) -> float:
    """Return what a run cost: 0 is the low end of its range, 1 the amount, 2 the high end."""
    cost = charge.cost or {}
    amount = as_number(cost.get("amount")) or 0.0
    ends = cost.get("range")
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return amount
    return (as_number(ends[0]) or 0.0, amount, as_number(ends[1]) or 0.0)[end]


def _whole_days(charges: Sequence[Charge], month: Month) -> Iterator[float]:
    for day in range(int(month.days)):
        yield sum(_amount(charge) * month.share_of(charge, day, day + 1) for charge in charges)


def _forecast(spent: float, days: Sequence[float], month: Month) -> tuple[float, Range] | None:
    """Return what the month comes to if it goes on like this, and between what by how its days spread."""
    count = len(days)
    if count < MIN_DAYS:
        return None
    left = month.days_left
    middle = spent + fmean(days) * left
    spread = math.sqrt(squares(days) / (count - 1))
    # The days to come spread themselves, and the pace of those that were is not known exactly.
    reach = reach_of(SURE, count - 1) * spread * math.sqrt(left + left**2 / count)
    return middle, (max(spent, middle - reach), middle + reach)
