"""What one result costs its user (TCS): the time that was held, failed tries included, energy and storage. Pure.

The hour has the price that the pod's sheet gives it. Where the run's energy was measured, it takes the place of the
electricity that the sheet reckons with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from podwright.analysis.energy import Energy
from podwright.costs.ownership import CostItem, CostSheet, PodCosts
from podwright.runs.events import AttemptStarted, Event, PilotStarted
from podwright.runs.record import Asked, Record
from podwright.runs.training_clock import TrainingClock
from podwright.spec import Costs
from podwright.theme import words

_MONTH = "a month"
_BYTES_A_TB = 1e12


@dataclass(frozen=True)
class Phases:
    """How long a run waited, and what it held its nodes for, in seconds."""

    queue_s: float
    start_s: float
    failed_s: float
    init_s: float
    training_s: float

    @property
    def held_s(self) -> float:
        """Return how long nodes were held."""
        return self.start_s + self.failed_s + self.init_s + self.training_s


@dataclass(frozen=True)
class RunCosts:
    """The sheet of a run, its energy with the building's share, and its CO2; None where not known."""

    sheet: CostSheet
    phases: Phases
    energy_kwh: float | None
    co2_kg: float | None
    succeeded: bool

    def as_cost(self) -> dict[str, Any] | None:
        """Return what a record holds of it."""
        total = self.sheet.total
        if total is None:
            return None
        note = "at least: " if self.sheet.at_least else ""
        return {"amount": round(total, 4), "currency": self.sheet.currency, "origin": f"{note}{self.held_text}"}

    @property
    def held_text(self) -> str:
        """Return the hours that were paid, in words."""
        return next((item.origin for item in self.sheet.items if item.name == "training"), "")


def phases_of(record: Record, events: Iterable[Event]) -> Phases:
    """Return where the time of a run went; of one that never began nothing was held."""
    listed = list(events)
    clock = TrainingClock()
    for event in listed:
        clock = clock.after(event)
    pilots = [event.time for event in listed if isinstance(event, PilotStarted)]
    goes = sorted(event.time for event in listed if isinstance(event, AttemptStarted))
    if record.started_at is None or record.ended_at is None or not goes:
        waited_until = record.ended_at or record.created_at
        return Phases(max(0.0, waited_until - record.created_at), 0.0, 0.0, 0.0, 0.0)
    held_from = min([*pilots, goes[0]])
    began = goes[-1]
    if clock.run_start is not None and goes[-1] < clock.run_start < record.ended_at:
        began = clock.run_start
    marks = [record.created_at, held_from, goes[0], goes[-1], began, record.ended_at]
    spans = [max(0.0, after - before) for before, after in pairwise(marks)]
    return Phases(*spans)


def reckon_run(
    asked: Asked, record: Record, events: Sequence[Event], energy: Energy, pod: tuple[PodCosts, Costs], kept_bytes: int
) -> RunCosts:
    """Reckon one run on a pod of these costs."""
    costs, prices = pod
    phases = phases_of(record, events)
    pue = prices.pue or 1.0
    kwh = None if energy.kwh is None else energy.kwh * pue
    co2 = None if kwh is None or prices.grid_co2_kg_kwh is None else kwh * prices.grid_co2_kg_kwh
    items = [*_machines(asked, phases, costs), _storage(kept_bytes, prices)]
    if costs.rent is None:
        items.insert(-1, _electricity(asked, phases, costs, energy, prices))
    return RunCosts(CostSheet(costs.sheet.currency, tuple(items)), phases, kwh, co2, record.state == "succeeded")


def _machines(asked: Asked, phases: Phases, costs: PodCosts) -> Iterator[CostItem]:
    rate, what = _rate(asked, costs)
    yield CostItem("queue", 0.0, f"{words.duration(phases.queue_s)} of waiting, in which nothing was held")
    spans = {
        "start-up": phases.start_s,
        "failed tries": phases.failed_s,
        "initialisation": phases.init_s,
        "training": phases.training_s,
    }
    for name, seconds in spans.items():
        amount = None if rate is None else rate * seconds / 3600
        shown = f"{words.duration(seconds)} x {what}"
        if name == "training" or seconds:
            yield CostItem(name, amount, shown)


def _rate(asked: Asked, costs: PodCosts) -> tuple[float | None, str]:
    """Return what an hour of the run's share of the pod costs without electricity, and what that share is."""
    each, count, noun = costs.per_gpu_hour, asked.gpus, "GPU"
    if not asked.gpus:
        each, count, noun = costs.per_node_hour, asked.nodes, "node"
    if each is None:
        return None, f"{count} {noun}s, whose price is not known"
    return each * count * _without_power(costs), f"{count} {noun}{'s' * (count != 1)}"


def _without_power(costs: PodCosts) -> float:
    """Return the share of the sheet that is not electricity and cooling; all of it where the pod is rented."""
    total = costs.sheet.total
    if costs.rent is not None or not total:
        return 1.0
    return 1 - (costs.sheet.amount("electricity") + costs.sheet.amount("cooling")) / total


def _electricity(asked: Asked, phases: Phases, costs: PodCosts, energy: Energy, prices: Costs) -> CostItem:
    if energy.kwh is not None and prices.power_price_kwh is not None:
        pue = prices.pue or 1.0
        amount = energy.kwh * pue * prices.power_price_kwh
        return CostItem("electricity", amount, f"{energy.kwh:.3g} kWh {energy.origin}, x PUE {pue:g}")
    each, count = (costs.per_gpu_hour, asked.gpus) if asked.gpus else (costs.per_node_hour, asked.nodes)
    share = 1 - _without_power(costs)
    if each is None or not share:
        return CostItem("electricity", None, "neither measured nor given")
    return CostItem("electricity", each * count * share * phases.held_s / 3600, "modelled: the pod's full draw")


def _storage(kept_bytes: int, prices: Costs) -> CostItem:
    amount = None
    if prices.storage_tb_month is not None or not kept_bytes:
        amount = kept_bytes / _BYTES_A_TB * (prices.storage_tb_month or 0.0)
    return CostItem("storage", amount, f"{kept_bytes / 1e9:.3g} GB kept for {_MONTH}; storage_tb_month")


def per_result(runs: Sequence[RunCosts]) -> float | None:
    """Return what one result costs: all runs are paid for by those that succeeded."""
    results = sum(run.succeeded for run in runs)
    totals = [run.sheet.total for run in runs]
    known = [total for total in totals if total is not None]
    if not results or not known:
        return None
    return sum(known) / results
