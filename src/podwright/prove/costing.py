"""Costs as a user asks for them: of a pod, of a run, and of owning against renting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podwright.costs.ownership import CostSheet, PodCosts, is_priced, pod_costs
from podwright.costs.prices import PriceOffer, PriceTable
from podwright.costs.run_costs import RunCosts, per_result
from podwright.costs.sensitivity import Lever, levers
from podwright.design import Design
from podwright.launch import Session, find
from podwright.launch.cost import pod_of, reckon
from podwright.spec import Pod
from podwright.spec.problems import refuse


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
            **sheet_json(costs.sheet),
            "per_gpu_hour": costs.per_gpu_hour,
            "years": costs.years,
            "gpus": costs.gpus,
            "utilization": costs.utilization,
            "energy_kwh_year": energy,
            "co2_kg_year": None if energy is None or co2 is None else energy * co2,
            "sensitivity": [lever.as_json() for lever in self.levers],
        }


def sheet_json(sheet: CostSheet) -> dict[str, Any]:
    """Return a sum as all `cost` commands have it."""
    return {
        "currency": sheet.currency,
        "total": sheet.total,
        "at_least": sheet.at_least,
        "missing": sheet.missing,
        "items": [item.as_json() for item in sheet.items],
    }


def bill_of(pod: Pod) -> PodBill:
    """Reckon a pod; refuse one without prices, or whose prices are in no currency."""
    check_priced(pod)
    return PodBill(pod, pod_costs(pod), tuple(levers(pod, Design.of(pod).bill())))


def check_priced(pod: Pod) -> None:
    """Refuse a pod of which no price is known, or whose prices are of no currency."""
    if not is_priced(pod):
        hint = "write `costs: {currency: EUR, node_price: 199000, power_price_kwh: 0.22}`"
        raise pod.refusal([("costs", "has no prices", hint)])
    if "currency" not in pod.costs.model_fields_set:
        raise pod.refusal([("costs.currency", "is missing", "write `currency: EUR`, or whatever the prices are in")])


@dataclass(frozen=True)
class RunBill:
    """The runs behind one result, each with its costs."""

    run: str
    ids: tuple[str, ...]
    runs: tuple[RunCosts, ...]

    @property
    def sheet(self) -> CostSheet:
        """Return all runs as one sum, line by line."""
        from podwright.costs.ownership import CostItem

        lines: dict[str, list[CostItem]] = {}
        for run in self.runs:
            for item in run.sheet.items:
                lines.setdefault(item.name, []).append(item)
        items = []
        for name, rows in lines.items():
            known = [row.amount for row in rows if row.amount is not None]
            origin = rows[0].origin if len(rows) == 1 else f"{len(rows)} runs"
            items.append(CostItem(name, sum(known) if known else None, origin))
        return CostSheet(self.runs[0].sheet.currency, tuple(items))

    @property
    def energy_kwh(self) -> float | None:
        """Return the energy of all runs, as far as it was measured."""
        return _sum([run.energy_kwh for run in self.runs])

    @property
    def co2_kg(self) -> float | None:
        """Return the CO2 of all runs."""
        return _sum([run.co2_kg for run in self.runs])

    @property
    def per_result(self) -> float | None:
        """Return what one result costs."""
        return per_result(self.runs)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost run`."""
        more = {"per_result": self.per_result, "energy_kwh": self.energy_kwh, "co2_kg": self.co2_kg}
        results = sum(run.succeeded for run in self.runs)
        return {**sheet_json(self.sheet), **more, "run": self.run, "runs": len(self.runs), "results": results}


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return sum(known)


def run_bill(session: Session, ref: str, pod: Pod | None) -> RunBill:
    """Reckon a run with the prices of its own pod, or of another."""
    run = find(session, ref)
    whole, points = run.records()
    records = points or [whole]
    pod = pod or pod_of(run.folder)
    if pod is None:
        hint = "name a pod whose prices to take: --pod pod.yaml"
        raise refuse(f"{run.id} ran on {whole.target}, which has no prices", hint=hint)
    check_priced(pod)
    ended = [record for record in records if record.is_final]
    if not ended:
        raise refuse(f"{run.id} is not over", hint=f"podwright wait {run.id}")
    costs = tuple(reckon(session.home.folder(record.id), record, pod) for record in ended)
    return RunBill(run.id, tuple(record.id for record in ended), costs)


@dataclass(frozen=True)
class RentRow:
    """An offer beside the pod: its price in the pod's currency, and from which utilisation on owning is cheaper."""

    table: PriceTable
    offer: PriceOffer
    per_gpu_hour: float
    break_even: float | None


@dataclass(frozen=True)
class OwnOrRent:
    """A pod against price tables."""

    bill: PodBill
    rate: float | None
    rows: tuple[RentRow, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `cost compare`."""
        rows = []
        for row in self.rows:
            rows.append(
                {
                    "offer": row.offer.name,
                    "accelerator": row.offer.accelerator,
                    "per_gpu_hour": row.per_gpu_hour,
                    "break_even_utilization": row.break_even,
                    "source": row.table.source,
                    "seen": row.table.seen,
                    "trust": row.table.trust,
                }
            )
        return {**self.bill.as_json(), "rate": self.rate, "offers": rows}


def own_or_rent(pod: Pod, tables: Sequence[PriceTable], rate: float | None) -> OwnOrRent:
    """Put a pod beside what can be rented; `rate` is what one unit of a table's currency is in the pod's."""
    bill, rows = bill_of(pod), []
    for table in tables:
        if table.currency != pod.costs.currency and rate is None:
            message = f"the prices of {table.name} are in {table.currency}, those of {pod.name} in {pod.costs.currency}"
            hint = f"say what one {table.currency} is in {pod.costs.currency}: --rate 0.92"
            raise refuse(message, hint=hint, field="--rate")
        factor = 1.0 if table.currency == pod.costs.currency else rate or 1.0
        for offer in table.offers:
            price = offer.per_gpu_hour * factor
            rows.append(RentRow(table, offer, price, bill.costs.break_even(price)))
    return OwnOrRent(bill, rate, tuple(rows))
