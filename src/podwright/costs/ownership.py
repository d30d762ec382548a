"""What owning a pod costs (TCO), and from it the price of a GPU hour. Pure.

Every amount has its origin. Nothing is made up: what nobody gave a price for has no amount, is named, and makes the
total an "at least". Two things are assumed where the pod does not say: five years of use, and that every hour is used,
which is the least that an hour can cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from podwright.analysis.statistics import known_sum
from podwright.costs.currencies import currency_hint
from podwright.costs.ranges import HIGH, LOW, Range, bill_at, costs_at, is_ranged
from podwright.design import Design
from podwright.design.bom import Item
from podwright.design.running import YEAR_H, YEARS, electricity, known_power_w
from podwright.spec import Costs, Pod
from podwright.spec.problems import short

_KINDS = {"node": "nodes", "storage": "storage", "rack": "racks", "cable": "cables"}
_KINDS |= {"transceiver": "cables", "cable manager": "racks", "power feed": "racks"}
_ALSO = (
    "insurance",
    "licences",
    "procurement",
    "commissioning",
    "decommissioning",
    "security",
    "porting",
    "user training",
    "data migration",
)
"""What else an honest sum holds, as those who compared a supercomputer with a cloud listed it."""


@dataclass(frozen=True)
class Price:
    """What a GPU hour costs, and how that is known."""

    per_gpu_hour: float
    currency: str
    origin: str

    def as_json(self) -> dict[str, Any]:
        """Return it as `waste` has it."""
        return {"gpu_hour": self.per_gpu_hour, "currency": self.currency, "origin": self.origin}


@dataclass(frozen=True)
class CostItem:
    """One line of a sum; without an amount nobody knows what it costs."""

    name: str
    amount: float | None
    origin: str
    range: Range | None = None
    """Between which amounts it lies, where a price that it comes from is a range."""

    @property
    def ends(self) -> Range:
        """Return its range, which of one amount is that amount twice."""
        return self.range or (self.amount or 0.0, self.amount or 0.0)


@dataclass(frozen=True)
class CostSheet:
    """A sum with its lines; `at_least` where a line has no amount."""

    currency: str
    items: tuple[CostItem, ...]
    beneath: tuple[str, ...] = ()
    """What has no amount in the sheet that these amounts were computed from."""

    @property
    def total(self) -> float | None:
        """Return the sum of what is known; None where nothing is."""
        return known_sum(item.amount for item in self.items)

    @property
    def total_range(self) -> Range | None:
        """Return between which sums the total lies; None where no line is a range."""
        if not any(item.range for item in self.items):
            return None
        return sum(item.ends[0] for item in self.items), sum(item.ends[1] for item in self.items)

    def between(self, low: CostSheet, high: CostSheet) -> CostSheet:
        """Return it with the range of each line, by the same sheet at the low and at the high end of all prices."""
        items = []
        for item, *others in zip(self.items, low.items, high.items, strict=True):
            amounts = [other.amount for other in others if other.amount is not None]
            is_range = len(amounts) == len(others) and amounts[0] != amounts[-1]
            items.append(replace(item, range=(min(amounts), max(amounts)) if is_range else None))
        return replace(self, items=tuple(items))

    @property
    def missing(self) -> list[str]:
        """Return the names of what has no amount, here or beneath."""
        own = [item.name for item in self.items if item.amount is None]
        return list(dict.fromkeys([*own, *self.beneath]))

    @property
    def at_least(self) -> bool:
        """Tell whether the true sum is higher."""
        return bool(self.missing)

    def amount(self, name: str) -> float:
        """Return the amount of a line, 0 where it is not known."""
        return next((item.amount or 0.0 for item in self.items if item.name == name), 0.0)

    def as_json(self) -> dict[str, Any]:
        """Return a sum as all `cost` commands have it."""
        return {
            "currency": self.currency,
            "total": self.total,
            "total_range": self.total_range,
            "at_least": self.at_least,
            "missing": self.missing,
            "items": [asdict(item) for item in self.items],
        }


@dataclass(frozen=True)
class PodCosts:
    """What a pod costs over its years."""

    sheet: CostSheet
    years: float
    gpus: int
    nodes: int
    utilization: float
    power_w: float | None
    pue: float | None
    rent: float | None = None
    """Of a GPU hour, where the pod is rented and not owned."""
    ends: tuple[PodCosts, PodCosts] | None = None
    """The same at the low and at the high end of all prices, where one of them is a range."""

    @property
    def per_gpu_hour_range(self) -> Range | None:
        """Return between which prices a used GPU hour lies; None where no price of it is a range."""
        low, high = (end.per_gpu_hour for end in self.ends or (self, self))
        return None if low is None or high is None or low == high else (low, high)

    @property
    def computed_range(self) -> Range | None:
        """Return between which prices the lines of the sheet come to; None where no price is a range."""
        low, high = (end.computed_per_gpu_hour for end in self.ends or (self, self))
        return None if low is None or high is None or low == high else (low, high)

    @property
    def gpu_hours(self) -> float:
        """Return the GPU hours there are to be used, used or not."""
        return self.gpus * YEAR_H * self.years

    @property
    def per_gpu_hour(self) -> float | None:
        """Return what a GPU hour costs that is used; those that are not used have to be paid by it."""
        return self.computed_per_gpu_hour if self.rent is None else self.rent

    @property
    def computed_per_gpu_hour(self) -> float | None:
        """Return what the lines of the sheet come to, whether a price of an hour was given beside them or not."""
        return self.at_utilization(self.utilization)

    def at_utilization(self, share: float) -> float | None:
        """Return the same if this share of the hours were used: the break-even with renting, as a curve."""
        total = self.sheet.total
        if total is None or not self.gpus:
            return None
        return total / (self.gpu_hours * share)

    @property
    def per_node_hour(self) -> float | None:
        """Return the same for a compute node, which pods without GPUs have too."""
        total = self.sheet.total
        if self.rent is not None and self.nodes:
            return self.rent * self.gpus / self.nodes
        if total is None or not self.nodes:
            return None
        return total / (self.nodes * YEAR_H * self.years * self.utilization)

    @property
    def energy_kwh_year(self) -> float | None:
        """Return what the pod draws in a year at full power, the building included where its PUE is given."""
        if self.power_w is None:
            return None
        return self.power_w / 1000 * YEAR_H * (self.pue or 1.0)

    def break_even(self, rent_per_gpu_hour: float) -> float | None:
        """Return the share of hours from which on owning is cheaper than renting; above 1: never."""
        total = self.sheet.total
        if total is None or not self.gpus:
            return None
        return total / self.gpu_hours / rent_per_gpu_hour


class _ByFile:
    """Lets a pod be looked up by its file alone: the model itself cannot be hashed."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByFile) and bool(self.pod.source) and self.pod.source == other.pod.source

    def __hash__(self) -> int:
        return hash(self.pod.source)


@lru_cache(maxsize=64)
def _costs_of_file(key: _ByFile) -> PodCosts:
    return costs_of_bill(key.pod, Design.of(key.pod).bill())


def pod_costs(pod: Pod) -> PodCosts:
    """Return what a pod costs, with switches, cables and racks from its design; a design is made once."""
    return _costs_of_file(_ByFile(pod))


def pod_price(pod: Pod) -> Price | None:
    """Return what a GPU hour costs; None where no price is given."""
    if not is_priced(pod):
        return None
    costs = pod_costs(pod)
    if costs.per_gpu_hour is None:
        return None
    if costs.rent is not None:
        return Price(costs.rent, pod.costs.currency, "gpu_hour_price of the pod")
    named = [item.name for item in costs.sheet.items if item.amount]
    years = f"{costs.years:g} years{'' if pod.costs.years else ' (assumed)'}"
    used = f"{costs.utilization:.0%} of hours used" if pod.costs.utilization else "every hour counted"
    return Price(costs.per_gpu_hour, pod.costs.currency, f"modelled: {', '.join(named)} over {years}, {used}")


def is_priced(pod: Pod) -> bool:
    """Tell whether anything is known of what the pod costs."""
    prices = pod.costs.model_fields_set - {"currency", "years", "pue", "utilization", "grid_co2_kg_kwh"}
    return bool(prices) or any(group.model.price is not None for group in pod.nodes)


def check_priced(pod: Pod) -> None:
    """Refuse a pod of which no price is known, or whose prices are of no currency."""
    if not is_priced(pod):
        hint = "write `costs: {currency: EUR, node_price: 199000, power_price_kwh: 0.22}`"
        raise pod.refusal([("costs", "has no prices", hint)])
    if "currency" not in pod.costs.model_fields_set:
        raise pod.refusal([("costs.currency", "is missing", "write `currency: EUR`, or whatever the prices are in")])
    meant = currency_hint(pod.costs.currency)
    if meant is not None:
        raise pod.refusal([("costs.currency", f"{short(pod.costs.currency)!r} is no currency", meant)])


def costs_of_bill(pod: Pod, bill: Sequence[Item]) -> PodCosts:
    """Return what a pod costs by its file and its bill of materials; with ranges where its prices are."""
    costs = _costs_at(pod, pod.costs, bill)
    if not is_ranged(pod.costs, bill):
        return costs
    low, high = (_costs_at(pod, costs_at(pod.costs, end), bill_at(bill, end)) for end in (LOW, HIGH))
    return replace(costs, sheet=costs.sheet.between(low.sheet, high.sheet), ends=(low, high))


def _costs_at(pod: Pod, costs: Costs, bill: Sequence[Item]) -> PodCosts:
    years, gpus, power_w = costs.years or YEARS, _gpus(pod), known_power_w(bill)
    bought = list(_bought(bill))
    capital = sum(item.amount or 0.0 for item in bought)
    items = [*bought, *_running(costs, years, capital, bill), _space(pod, years, bill), *_also(costs, years)]
    compute = len(pod.compute_hosts())
    sheet = CostSheet(costs.currency, tuple(items))
    return PodCosts(sheet, years, gpus, compute, costs.utilization or 1.0, power_w, costs.pue, costs.gpu_hour_price)


def _gpus(pod: Pod) -> int:
    gpus = 0
    for group in pod.nodes:
        if "compute" in group.roles and group.model.gpus:
            gpus += len(group.hosts) * group.model.gpus.count
    return gpus


def _bought(bill: Sequence[Item]) -> Iterable[CostItem]:
    """Yield a line for nodes, switches, storage, racks and cables; one without all its prices is split in two."""
    groups: dict[str, list[Item]] = {}
    for item in bill:
        groups.setdefault(_KINDS.get(item.kind, "switches"), []).append(item)
    for name, items in groups.items():
        priced = [item for item in items if item.amount is not None]
        without = [item for item in items if item.amount is None and item.count]
        counted: Counter[str] = Counter()
        for item in priced:
            counted[item.name] += item.count
        counts = ", ".join(f"{count} {kind}" for kind, count in counted.items())
        if priced:
            yield CostItem(name, sum(item.amount or 0.0 for item in priced), f"{counts}: prices of the pod")
        if without:
            label = name if not priced else f"other {name}"
            yield CostItem(label, None, f"no price: {_listed(without)}")


def _listed(items: Sequence[Item]) -> str:
    return ", ".join(dict.fromkeys(item.name for item in items))


def _running(costs: Costs, years: float, capital: float, bill: Sequence[Item]) -> Iterable[CostItem]:
    support, finance = costs.support_percent, costs.finance_percent
    yield _share("support", support, capital * years, "support_percent of what was bought, each year")
    # What is owed goes down evenly over the years, so that half of it is owed on average.
    yield _share("financing", finance, capital * years / 2, "finance_percent of half of what was bought, each year")
    power_w, power = known_power_w(bill), electricity(costs, bill)
    shown = "power not known" if power_w is None else f"{power_w / 1000:,.1f} kW, the full draw of what is known"
    yield CostItem("electricity", power.machines if power else None, f"{shown}, every hour; power_price_kwh")
    yield CostItem("cooling", power.cooling if power else None, "pue, on top of electricity")
    yield _times("staff", costs.staff_year, years, "staff_year")


def _share(name: str, percent: float | None, base: float, origin: str) -> CostItem:
    return CostItem(name, None if percent is None else base * percent / 100, origin)


def _times(name: str, price: float | None, factor: float, origin: str) -> CostItem:
    return CostItem(name, None if price is None else price * factor, origin)


def _space(pod: Pod, years: float, bill: Iterable[Item]) -> CostItem:
    racks = sum(item.count for item in bill if item.kind == "rack")
    square_m = racks * pod.racks.pitch_m * pod.racks.row_m
    return _times("space", pod.costs.space_m2_year, square_m * years, f"{square_m:.1f} m2 of racks; space_m2_year")


def _also(costs: Costs, years: float) -> Iterable[CostItem]:
    """Yield what the pod names besides, then what else there is and nobody gave a price for, in one line."""
    for name, price in costs.other_year.items():
        yield CostItem(name, price * years, "other_year")
    named = {name.lower() for name in costs.other_year}
    rest = [name for name in _ALSO if name not in named]
    if rest:
        yield CostItem("not counted", None, ", ".join(rest))
