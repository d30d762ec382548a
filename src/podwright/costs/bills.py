"""Costs as a user asks for them: of a pod, of a run, and of owning against renting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from podwright.analysis.statistics import known_sum
from podwright.costs.currencies import currency_hint
from podwright.costs.ownership import CostItem, CostSheet, PodCosts, check_priced, pod_costs
from podwright.costs.prices import PriceOffer, PriceTable
from podwright.costs.record import pod_of
from podwright.costs.run_costs import RunCosts, cost_of_run, per_result
from podwright.costs.sensitivity import Lever, levers
from podwright.design import Design
from podwright.runs import Record, RunFolder
from podwright.spec import Pod
from podwright.spec.problems import refuse, short


@dataclass(frozen=True)
class PodBill:
    """A pod, what it costs, and what that hangs on."""

    pod: Pod
    costs: PodCosts
    levers: tuple[Lever, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost pod`."""
        costs, co2 = self.costs, self.pod.costs.grid_co2_kg_kwh
        energy = costs.energy_kwh_year
        return {
            **costs.sheet.as_json(),
            "per_gpu_hour": costs.per_gpu_hour,
            "per_gpu_hour_given": costs.rent,
            "per_gpu_hour_computed": costs.computed_per_gpu_hour,
            "years": costs.years,
            "gpus": costs.gpus,
            "utilization": costs.utilization,
            "energy_kwh_year": energy,
            "co2_kg_year": None if energy is None or co2 is None else energy * co2,
            "sensitivity": [lever.as_json() for lever in self.levers],
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
            items.append(CostItem(name, known_sum(row.amount for row in rows), origin))
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

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost run`."""
        more = {"per_result": self.per_result, "energy_kwh": self.energy_kwh, "co2_kg": self.co2_kg}
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

    def as_json(self) -> dict[str, Any]:
        """Return it as `cost compare` lists it."""
        return {
            "offer": self.offer.name,
            "accelerator": self.offer.accelerator,
            "per_gpu_hour": self.per_gpu_hour,
            "break_even_utilization": self.break_even,
            "per_work": self.per_work,
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

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Return what a GPU hour of the pod costs if so much of its hours were used."""
        points = [(share / 10, self.bill.costs.at_utilization(share / 10)) for share in range(1, 11)]
        return [(share, price) for share, price in points if price is not None]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost compare`."""
        offers = [row.as_json() for row in self.rows]
        curve = [{"utilization": share, "per_gpu_hour": price} for share, price in self.curve]
        return {**self.bill.as_json(), "rate": self.rate, "work": self.work, "offers": offers, "curve": curve}


def own_or_rent(
    pod: Pod, tables: Sequence[PriceTable], rate: float | None = None, work: float | None = None
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
    return OwnOrRent(bill, rate, tuple(rows), work)


def _rent_row(bill: PodBill, table: PriceTable, offer: PriceOffer, terms: tuple[float, float | None]) -> RentRow:
    factor, work = terms
    price = offer.per_gpu_hour * factor
    if work is not None and offer.work_per_gpu_hour is not None:
        # What the pod's own hour may cost for the same work.
        worth = price * work / offer.work_per_gpu_hour
        return RentRow(table, offer, price, bill.costs.break_even(worth), price / offer.work_per_gpu_hour)
    is_alike = _is_alike(bill.pod, offer.accelerator)
    return RentRow(table, offer, price, bill.costs.break_even(price) if is_alike else None, None, is_alike)


def _is_alike(pod: Pod, accelerator: str) -> bool:
    """Tell whether an offer has the GPU of the pod's own nodes: by the parts of its name, `A100` of `A100 80GB`."""
    own = {group.model.gpus.model.lower() for group in pod.nodes if group.model.gpus}
    kind = accelerator.lower().split()[0]
    return any(kind in re.split(r"[^a-z0-9]+", name) for name in own)
