"""Money: what runs cost and whose they were, what of it bought no step, and a pod's own price beside rent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podwright import costs, launch, usage
from podwright.analysis.goodput import TITLES
from podwright.console.routes.links import pod_named
from podwright.console.routes.run import RunNamed, found
from podwright.console.web.answers import Answer, JsonAnswer, Page
from podwright.console.web.route import Visit
from podwright.launch import pods
from podwright.spec.problems import Refusal, refuse

DAY_S = 86400.0
MAX_DAYS = 3660
MAX_ROWS = 20
PERIODS = (7, 30, 90, 365)
_TITLES = {"team": "Team", "user": "User", "name": "Workload", "target": "Target", "state": "Outcome", "class": "Cause"}
_NOBODY = {"team": "no team", "user": "nobody named"}


@dataclass(frozen=True)
class CostRequest:
    """How many days back are added up."""

    days: int = 30

    def since(self, now: float) -> float:
        """Return from when on runs count."""
        if not 1 <= self.days <= MAX_DAYS:
            raise refuse(f"is {self.days}", f"1 to {MAX_DAYS} days", field="days")
        return now - self.days * DAY_S


@dataclass(frozen=True)
class PodCostRequest:
    """A pod; `rate` is what one unit of the price tables' currency is in the pod's."""

    pod: str
    rate: str = ""

    @property
    def factor(self) -> float | None:
        """Return the rate as a number."""
        if not self.rate.strip():
            return None
        try:
            rate = float(self.rate)
        except ValueError:
            rate = 0.0
        if not 0 < rate < 1e12:
            raise refuse("is no rate", "write it like 0.92", field="rate")
        return rate


@dataclass(frozen=True)
class SpentLine:
    """A row of a table of spending, with how much of the greatest it is."""

    name: str
    runs: int
    amount: float
    share: float


def _spent(visit: Visit, asked: CostRequest) -> launch.RunsSpent:
    return launch.spent_on_runs(visit.desk.session, asked.since(visit.desk.clock.time()))


def spending(visit: Visit, asked: CostRequest) -> Answer:
    """Return what the runs of the last days cost, divided in several ways."""
    return JsonAnswer(_spent(visit, asked).as_json())


def cost_of_run(visit: Visit, asked: RunNamed) -> Answer:
    """Return what a run cost, line by line, as `cost run --json` has it."""
    return JsonAnswer(costs.run_bill(found(visit, asked.run)).as_json())


def cost_of_pod(visit: Visit, asked: PodCostRequest) -> Answer:
    """Return what owning a pod costs and what its teams spent, as `cost pod --json` has it."""
    return JsonAnswer(_bill(visit, asked.pod).as_json())


def rent_of_pod(visit: Visit, asked: PodCostRequest) -> Answer:
    """Return a pod's own price beside rent, as `cost compare --json` has it."""
    return JsonAnswer(_rent(visit, asked).as_json())


def _bill(visit: Visit, name: str) -> costs.PodBill:
    bill = costs.pod_bill(pod_named(visit, name))
    if not bill.pod.teams:
        return bill
    return replace(bill, spending=usage.spent(visit.desk.session, bill.pod, visit.desk.clock.time()))


def _rent(visit: Visit, asked: PodCostRequest) -> costs.OwnOrRent:
    return costs.own_or_rent(pod_named(visit, asked.pod), costs.price_tables([]), asked.factor)


def cost_page(visit: Visit, asked: CostRequest) -> Answer:
    """Show what the last days cost, whose it was, and what of it bought no step that counts."""
    spent = _spent(visit, asked)
    tables = [(currency, list(_tables(spent, currency))) for currency in spent.totals]
    view = {
        "title": "Cost",
        "asked": asked,
        "periods": PERIODS,
        "spent": spent,
        "tables": tables,
        "verdict": _verdict(spent, asked.days),
        "pods": list(pods.known(visit.desk.session.home)),
    }
    return Page("cost", view)


def _verdict(spent: launch.RunsSpent, days: int) -> str:
    if not spent.totals:
        return f"No run of the last {days} days has a price."
    parts = []
    for currency, amount in spent.totals.items():
        text = f"{amount:,.2f} {currency}"
        lost = spent.unproductive(currency)
        if lost is not None and amount:
            text += f", {lost / amount:.0%} of it for time in which no step was made that counts"
        parts.append(text)
    return f"The last {days} days cost {'; '.join(parts)}."


def _tables(spent: launch.RunsSpent, currency: str) -> Iterator[tuple[str, Sequence[SpentLine], int]]:
    for by, rows in spent.by.items():
        priced = [row for row in rows if row.currency == currency and row.amount is not None]
        top = max((row.amount or 0.0 for row in priced), default=0.0) or 1.0
        lines = []
        for row in priced[:MAX_ROWS]:
            name = row.name or _NOBODY.get(by, "none")
            amount = row.amount or 0.0
            lines.append(SpentLine(TITLES.get(name, name) if by == "class" else name, row.runs, amount, amount / top))
        yield _TITLES[by], lines, len(priced) - len(lines)


def pod_cost_page(visit: Visit, asked: PodCostRequest) -> Answer:
    """Show what owning a pod costs, what its teams spent of their budgets, and from when on renting is dearer."""
    pod_named(visit, asked.pod)
    view: dict[str, Any] = {"title": f"{asked.pod}: cost", "asked": asked, "bill": None, "rent": None, "problems": ()}
    try:
        view["bill"] = _bill(visit, asked.pod)
        view["rent"] = _rent(visit, asked)
    except Refusal as refusal:
        view["problems"] = refusal.problems
    return Page("pod_cost", view)
