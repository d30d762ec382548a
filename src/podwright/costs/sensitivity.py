"""Which input the price of a GPU hour hangs on: each is moved alone, the others stay. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podwright.costs.ownership import PodCosts, costs_of_bill
from podwright.design.bom import Item
from podwright.spec import Pod

STEP = 0.2
_INPUTS = (
    "node_price",
    "switch_price",
    "power_price_kwh",
    "staff_year",
    "space_m2_year",
    "support_percent",
    "finance_percent",
    "pue",
    "years",
    "utilization",
)


@dataclass(frozen=True)
class Lever:
    """An input, and the price of a GPU hour when it is a fifth lower and a fifth higher."""

    name: str
    value: float
    low: float
    high: float

    @property
    def reach(self) -> float:
        """Return how far it moves the price."""
        return abs(self.high - self.low)

    def as_json(self) -> dict[str, Any]:
        """Return it as `cost pod` lists it."""
        return {"input": self.name, "value": self.value, "per_gpu_hour": [self.low, self.high]}


def levers(pod: Pod, bill: Sequence[Item]) -> list[Lever]:
    """Return the inputs that were given, the one that moves the price most first."""
    rows = []
    for name in _INPUTS:
        value = getattr(pod.costs, name)
        if value:
            ends = [_moved(pod, bill, name, value * factor) for factor in (1 - STEP, 1 + STEP)]
            prices = [end.per_gpu_hour for end in ends if end.per_gpu_hour is not None]
            if len(prices) == 2 and prices[0] != prices[1]:
                rows.append(Lever(name, value, prices[0], prices[1]))
    return sorted(rows, key=lambda lever: -lever.reach)


def _moved(pod: Pod, bill: Sequence[Item], name: str, value: float) -> PodCosts:
    limits = {"utilization": min(value, 1.0), "pue": max(value, 1.0)}
    costs = pod.costs.model_copy(update={name: limits.get(name, value)})
    return costs_of_bill(pod.model_copy(update={"costs": costs}), list(_bill(pod, bill, name, value)))


def _bill(pod: Pod, bill: Sequence[Item], name: str, value: float) -> Iterator[Item]:
    """Yield the bill with another price of nodes or switches where it came from the pod's file."""
    old = {"node_price": pod.costs.node_price, "switch_price": pod.costs.switch_price}.get(name)
    for item in bill:
        kind = "node_price" if item.kind == "node" else "switch_price"
        is_meant = kind == name and (item.kind == "node" or "switch" in item.kind)
        yield replace(item, price=value) if is_meant and item.price == old else item
