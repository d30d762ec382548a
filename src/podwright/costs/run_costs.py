"""What one result costs its user (TCS): the time that was held, failed tries included, energy and storage.

The hour has the price that the pod's sheet gives it. Where the run's energy was measured, it takes the place of the
electricity that the sheet has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from podwright.analysis.energy import Energy, energy_of
from podwright.analysis.statistics import known_sum
from podwright.costs.ownership import CostItem, CostSheet, PodCosts, pod_costs
from podwright.costs.ranges import HIGH, LOW, Range, costs_at
from podwright.runs import RunFolder
from podwright.runs.events import AttemptStarted, Event, PilotStarted
from podwright.runs.record import Record
from podwright.runs.training_clock import TrainingClock
from podwright.spec import Costs, Pod
from podwright.theme import words


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
        row = {"amount": round(total, 4), "currency": self.sheet.currency, "origin": f"{note}{self.held_text}"}
        if self.sheet.total_range is not None:
            row["range"] = [round(end, 4) for end in self.sheet.total_range]
        return row

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


@dataclass(frozen=True)
class RunUse:
    """What a run had of its pod: machines for a time, energy as far as it was measured, and space."""

    gpus: int
    nodes: int
    phases: Phases
    energy: Energy
    saved_bytes: int = 0


def cost_of_run(folder: RunFolder, record: Record, pod: Pod) -> RunCosts:
    """Return what a run cost with the prices of a pod, its own or another."""
    asked, phases = folder.asked, phases_of(record, folder.events())
    energy = energy_of(folder.samples(), dict(enumerate(record.hosts)))
    use = RunUse(asked.gpus, asked.allocated_nodes, phases, energy, folder.saved_bytes())
    return cost_of_use(use, pod, record.state == "succeeded")


def cost_of_use(use: RunUse, pod: Pod, succeeded: bool = True) -> RunCosts:
    """Return the same of what it had; at both ends of the prices where some are ranges."""
    costs, prices = pod_costs(pod), pod.costs
    sheet = _sheet(use, costs, prices)
    if costs.ends is not None:
        low, high = (_sheet(use, costs.ends[end], costs_at(prices, end)) for end in (LOW, HIGH))
        sheet = sheet.between(low, high)
    kwh = None if use.energy.kwh is None else use.energy.kwh * (prices.pue or 1.0)
    co2 = None if kwh is None or prices.grid_co2_kg_kwh is None else kwh * prices.grid_co2_kg_kwh
    return RunCosts(sheet, use.phases, kwh, co2, succeeded)


def _sheet(use: RunUse, costs: PodCosts, prices: Costs) -> CostSheet:
    share = _share_of(use, costs)
    items = list(_machines(share, use.phases, costs))
    if costs.rent is None:
        items += _people(share, use.phases, costs)
        items += _electricity(share, use.phases, costs, use.energy, prices)
    items.append(_storage(use.saved_bytes, prices))
    beneath = () if costs.rent is not None else tuple(costs.sheet.missing)
    return CostSheet(costs.sheet.currency, tuple(items), beneath)


@dataclass(frozen=True)
class _Share:
    """What a run has of the pod: so many GPUs, or of a pod without any nodes, and the price of an hour of them."""

    count: int
    noun: str
    per_hour: float | None


def _share_of(use: RunUse, costs: PodCosts) -> _Share:
    count, noun, each = use.gpus, "GPU", costs.per_gpu_hour
    if not use.gpus:
        count, noun, each = use.nodes, "node", costs.per_node_hour
    return _Share(count, noun, None if each is None else each * count)


def _machines(share: _Share, phases: Phases, costs: PodCosts) -> Iterator[CostItem]:
    rate, what = None, f"{share.count} {share.noun}s, whose price is not known"
    if share.per_hour is not None:
        rate = share.per_hour * (1 - _part(costs, *_APART))
        what = words.count(share.count, share.noun, grouped=False)
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


_POWER, _STAFF = ("electricity", "cooling"), ("staff",)
_APART = (*_POWER, *_STAFF)
"""Lines of a pod's sheet that have lines of their own in that of a run."""


def _part(costs: PodCosts, *names: str) -> float:
    """Return which share of the sheet these lines are; nothing where the pod is rented."""
    total = costs.sheet.total
    if costs.rent is not None or not total:
        return 0.0
    return sum(costs.sheet.amount(name) for name in names) / total


def _people(share: _Share, phases: Phases, costs: PodCosts) -> Iterator[CostItem]:
    staff = _part(costs, *_STAFF)
    if share.per_hour is not None and staff:
        yield CostItem("staff", share.per_hour * staff * phases.held_s / 3600, "its share of staff_year")


def _electricity(share: _Share, phases: Phases, costs: PodCosts, energy: Energy, prices: Costs) -> Iterator[CostItem]:
    """Yield what its machines drew, measured or at full draw, and its share of the draw in hours that nobody uses.

    Both ways count the same hours, so that all runs together come to what the pod's sheet has.
    """
    power = _part(costs, *_POWER)
    whole = None if share.per_hour is None or not power else share.per_hour * power * phases.held_s / 3600
    if energy.kwh is not None and prices.power_price_kwh is not None:
        pue = prices.pue or 1.0
        amount = energy.kwh * pue * prices.power_price_kwh
        yield CostItem("electricity", amount, f"{energy.kwh:.3g} kWh {energy.origin}, x PUE {pue:g}")
    elif whole is None:
        yield CostItem("electricity", None, "neither measured nor given")
    else:
        yield CostItem("electricity", whole * costs.utilization, "modelled: the pod's full draw")
    if whole is not None and costs.utilization < 1:
        unused = f"its share of the {1 - costs.utilization:.0%} of hours that nobody uses"
        yield CostItem("idle electricity", whole * (1 - costs.utilization), unused)


def _storage(saved_bytes: int, prices: Costs) -> CostItem:
    amount = None
    if prices.storage_tb_month is not None or not saved_bytes:
        amount = saved_bytes / 1e12 * (prices.storage_tb_month or 0.0)
    return CostItem("storage", amount, f"{saved_bytes / 1e9:.3g} GB kept for a month; storage_tb_month")


def per_result_range(runs: Sequence[RunCosts]) -> Range | None:
    """Return between which prices a result lies; None where no price is a range."""
    results, ranges = sum(run.succeeded for run in runs), [run.sheet.total_range for run in runs]
    ends = [end for end in ranges if end is not None]
    if not results or len(ends) < len(ranges):
        return None
    return sum(low for low, _ in ends) / results, sum(high for _, high in ends) / results


def per_result(runs: Sequence[RunCosts]) -> float | None:
    """Return what one result costs: all runs are paid for by those that succeeded."""
    results = sum(run.succeeded for run in runs)
    total = known_sum(run.sheet.total for run in runs)
    if not results or total is None:
        return None
    return total / results
