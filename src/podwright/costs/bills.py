"""Costs as a user asks for them: of a pod, of a run, and of owning against renting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

from podwright.analysis.statistics import known_sum
from podwright.costs.budgets import Spending
from podwright.costs.currencies import currency_hint
from podwright.costs.ownership import CostItem, CostSheet, PodCosts, check_priced, pod_costs
from podwright.costs.prices import PriceOffer, PriceTable
from podwright.costs.ranges import HIGH, LOW, Range
from podwright.costs.record import pod_of
from podwright.costs.run_costs import RunCosts, cost_of_run, per_result, per_result_range
from podwright.costs.sensitivity import Lever, levers
from podwright.costs.spot import InterruptedUse, interrupted_use
from podwright.design import Design
from podwright.runs import Record, RunFolder
from podwright.runs.goodput.account import from_json
from podwright.spec import Pod
from podwright.spec.problems import refuse, short


@dataclass(frozen=True)
class PodBill:
    """A pod, what it costs, and what that hangs on."""

    pod: Pod
    costs: PodCosts
    levers: tuple[Lever, ...]
    spending: Spending | None = None
    """What its teams spent this month, where it has teams."""

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost pod`."""
        costs, co2 = self.costs, self.pod.costs.grid_co2_kg_kwh
        energy = costs.energy_kwh_year
        return {
            **costs.sheet.as_json(),
            "per_gpu_hour": costs.per_gpu_hour,
            "per_gpu_hour_range": costs.per_gpu_hour_range,
            "per_gpu_hour_given": costs.rent,
            "per_gpu_hour_computed": costs.computed_per_gpu_hour,
            "per_gpu_hour_computed_range": costs.computed_range,
            "years": costs.years,
            "gpus": costs.gpus,
            "utilization": costs.utilization,
            "energy_kwh_year": energy,
            "co2_kg_year": None if energy is None or co2 is None else energy * co2,
            "sensitivity": [lever.as_json() for lever in self.levers],
            **(self.spending.as_json() if self.spending else {"month": None, "teams": []}),
        }


def pod_bill(pod: Pod) -> PodBill:
    """Return what a pod costs; refuse one without prices, or whose prices are in no currency."""
    check_priced(pod)
    return PodBill(pod, pod_costs(pod), tuple(levers(pod, Design.of(pod).bill())))


@dataclass(frozen=True)
class RunBill:
    """The runs behind one result, each with its costs."""

    run: str
    runs: tuple[RunCosts, ...]

    @property
    def sheet(self) -> CostSheet:
        """Return all runs as one sum, line by line."""
        lines: dict[str, list[CostItem]] = {}
        for run in self.runs:
            for item in run.sheet.items:
                lines.setdefault(item.name, []).append(item)
        items = []
        for name, rows in lines.items():
            origin = rows[0].origin if len(rows) == 1 else f"{len(rows)} runs"
            ends = None
            if any(row.range for row in rows):
                ends = sum(row.ends[0] for row in rows), sum(row.ends[1] for row in rows)
            items.append(CostItem(name, known_sum(row.amount for row in rows), origin, ends))
        return CostSheet(self.runs[0].sheet.currency, tuple(items), self.runs[0].sheet.beneath)

    @property
    def energy_kwh(self) -> float | None:
        """Return the energy of all runs, as far as it was measured."""
        return known_sum(run.energy_kwh for run in self.runs)

    @property
    def co2_kg(self) -> float | None:
        """Return the CO2 of all runs."""
        return known_sum(run.co2_kg for run in self.runs)

    @property
    def per_result(self) -> float | None:
        """Return what one result costs."""
        return per_result(self.runs)

    @property
    def per_result_range(self) -> Range | None:
        """Return between which prices a result lies, where prices are ranges."""
        return per_result_range(self.runs)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost run`."""
        more = {
            "per_result": self.per_result,
            "per_result_range": self.per_result_range,
            "energy_kwh": self.energy_kwh,
            "co2_kg": self.co2_kg,
        }
        results = sum(run.succeeded for run in self.runs)
        return {**self.sheet.as_json(), **more, "run": self.run, "runs": len(self.runs), "results": results}


class CostedRun(Protocol):
    """What a bill asks of a run, as `podwright.Run` has it."""

    id: str

    @property
    def folder(self) -> RunFolder: ...

    def records(self) -> tuple[Record, list[Record]]: ...

    def parts(self) -> Sequence[CostedRun]: ...


def run_bill(run: CostedRun, pod: Pod | None = None) -> RunBill:
    """Return what a run cost with the prices of its own pod, or of another; refuse one that is not over."""
    parent, points = run.records()
    pod = pod or pod_of(run.folder)
    if pod is None:
        hint = "name a pod whose prices to take: --pod pod.yaml"
        raise refuse(f"{run.id} ran on {parent.target}, which has no prices", hint=hint)
    check_priced(pod)
    folders = {part.id: part.folder for part in run.parts()}
    ended = [record for record in points or [parent] if record.is_final and record.id in folders]
    if not ended:
        raise refuse(f"{run.id} is not over", hint=f"podwright wait {run.id}")
    return RunBill(run.id, tuple(cost_of_run(folders[record.id], record, pod) for record in ended))


def runs_bill(name: str, runs: Sequence[CostedRun], pod: Pod | None = None) -> RunBill:
    """Return what several runs cost that belong together: the results of some pay for the failures of others."""
    bills = [run_bill(run, pod) for run in runs]
    return RunBill(name, tuple(chain.from_iterable(bill.runs for bill in bills)))


@dataclass(frozen=True)
class RentRow:
    """An offer beside the pod: its price in the pod's currency, and from which utilisation on owning is cheaper."""

    table: PriceTable
    offer: PriceOffer
    per_gpu_hour: float
    break_even: float | None
    per_work: float | None = None
    """Of a unit of work, where both say how much of it a GPU hour does."""
    is_alike: bool = True
    """Whether an hour of it is an hour of the pod's own GPU, or the work of both is known."""
    per_gpu_hour_range: Range | None = None
    break_even_range: Range | None = None
    """Both of them where a price is a range: owning at its lowest beside renting at its highest, and the reverse."""
    goodput: float | None = None
    """Of a run on it, interruptions included, where one is named."""

    @property
    def per_productive_hour(self) -> float | None:
        """Return what an hour costs in which a GPU makes steps that count."""
        return self.per_gpu_hour / self.goodput if self.goodput else None

    def as_json(self) -> dict[str, Any]:
        """Return it as `cost compare` lists it."""
        return {
            "offer": self.offer.name,
            "accelerator": self.offer.accelerator,
            "per_gpu_hour": self.per_gpu_hour,
            "per_gpu_hour_range": self.per_gpu_hour_range,
            "break_even_utilization": self.break_even,
            "break_even_range": self.break_even_range,
            "per_work": self.per_work,
            "interruptions_per_day": self.offer.interruptions_per_day,
            "goodput": self.goodput,
            "per_productive_gpu_hour": self.per_productive_hour,
            "comparable": self.is_alike,
            "source": self.table.source,
            "seen": self.table.seen,
            "trust": self.table.trust,
        }


@dataclass(frozen=True)
class OwnOrRent:
    """A pod against price tables."""

    bill: PodBill
    rate: float | None
    rows: tuple[RentRow, ...]
    work: float | None = None
    """Samples, or results, that a GPU hour of the pod does."""
    use: InterruptedUse | None = None
    """How a run uses its time, where one is named."""

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Return what a GPU hour of the pod costs if so much of its hours were used."""
        points = [(share / 10, self.bill.costs.at_utilization(share / 10)) for share in range(1, 11)]
        return [(share, price) for share, price in points if price is not None]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost compare`."""
        offers = [row.as_json() for row in self.rows]
        curve = [{"utilization": share, "per_gpu_hour": price} for share, price in self.curve]
        run = None if self.use is None else {"run": self.use.run, "goodput": self.use.steady, "lost_h": self.use.lost_h}
        terms = {"rate": self.rate, "work": self.work, "use": run}
        return {**self.bill.as_json(), **terms, "offers": offers, "curve": curve}


def own_or_rent(
    pod: Pod,
    tables: Sequence[PriceTable],
    rate: float | None = None,
    work: float | None = None,
    use: InterruptedUse | None = None,
) -> OwnOrRent:
    """Put a pod beside what can be rented; `rate` is what one unit of a table's currency is in the pod's.

    An hour of another GPU is another thing: it is compared by the work that an hour does, where both say it.
    """
    bill, rows = pod_bill(pod), []
    for table in tables:
        hint = currency_hint(table.currency)
        if hint is not None:
            message = f"{short(table.currency)!r} of {table.name} is no currency"
            raise refuse(message, hint=hint, field="currency")
        if table.currency != pod.costs.currency and rate is None:
            message = f"the prices of {table.name} are in {table.currency}, those of {pod.name} in {pod.costs.currency}"
            hint = f"say what one {table.currency} is in {pod.costs.currency}: --rate 0.92"
            raise refuse(message, hint=hint, field="--rate")
        factor = 1.0 if table.currency == pod.costs.currency else rate or 1.0
        rows += [_rent_row(bill, table, offer, (factor, work)) for offer in table.offers]
    if use is not None:
        rows = [replace(row, goodput=use.goodput_at(row.offer.interruptions_per_day)) for row in rows]
    return OwnOrRent(bill, rate, tuple(rows), work, use)


def use_of(run: CostedRun) -> InterruptedUse:
    """Return how a run uses its time; refuse one of which nothing follows for others."""
    record, _ = run.records()
    use = interrupted_use(run.id, from_json(record.goodput))
    if use is None:
        hint = "rent is priced by a run that has made steps: `podwright ps --where 'goodput>0'`"
        raise refuse(f"{run.id} did nothing productive", hint=hint, field="--run")
    return use


def _rent_row(bill: PodBill, table: PriceTable, offer: PriceOffer, terms: tuple[float, float | None]) -> RentRow:
    factor, work = terms
    price, ends = offer.per_gpu_hour * factor, offer.per_gpu_hour_range
    if ends is not None:
        ends = ends[0] * factor, ends[1] * factor
    if work is not None and offer.work_per_gpu_hour is not None:
        # What the pod's own hour may cost for the same work.
        worth, is_alike, per_work = work / offer.work_per_gpu_hour, True, price / offer.work_per_gpu_hour
    else:
        worth, is_alike, per_work = 1.0, _is_alike(bill.pod, offer.accelerator), None
    row = RentRow(table, offer, price, None, per_work, is_alike, ends)
    if not is_alike:
        return row
    even = bill.costs.break_even(price * worth)
    return replace(row, break_even=even, break_even_range=_break_even_range(bill, ends, price, worth))


def _break_even_range(bill: PodBill, ends: Range | None, price: float, worth: float) -> Range | None:
    """Return between which shares of use owning becomes cheaper; None where neither side is a range."""
    owned = bill.costs.ends
    if ends is None and owned is None:
        return None
    rents, owns = ends or (price, price), owned or (bill.costs, bill.costs)
    low, high = owns[LOW].break_even(rents[HIGH] * worth), owns[HIGH].break_even(rents[LOW] * worth)
    return None if low is None or high is None else (low, high)


def _is_alike(pod: Pod, accelerator: str) -> bool:
    """Tell whether an offer has the GPU of the pod's own nodes: by the parts of its name, `A100` of `A100 80GB`."""
    own = {group.model.gpus.model.lower() for group in pod.nodes if group.model.gpus}
    kind = accelerator.lower().split()[0]
    return any(kind in re.split(r"[^a-z0-9]+", name) for name in own)
