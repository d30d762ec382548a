"""Prices of which only the ends are known: the same sum is made at both, since every price adds to it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from podwright.design.bom import Item
from podwright.spec import Costs
from podwright.spec.types import PriceRange

Range = tuple[float, float]
LOW, HIGH = 0, 1


def price_at(price: Any, end: int) -> Any:
    """Return a price at one of its ends; what is no range is the same at both."""
    if isinstance(price, PriceRange):
        return price.ends[end]
    return price


def costs_at(costs: Costs, end: int) -> Costs:
    """Return all prices of a pod at one of their ends, but for those of its bill."""
    given = {name: price_at(getattr(costs, name), end) for name in costs.model_fields_set}
    given["other_year"] = {name: price_at(price, end) for name, price in costs.other_year.items()}
    return costs.model_copy(update=given)


def bill_at(bill: Sequence[Item], end: int) -> list[Item]:
    """Return a bill of materials with its prices at one of their ends."""
    return [replace(item, price=price_at(item.price, end)) for item in bill]


def is_ranged(costs: Costs, bill: Sequence[Item]) -> bool:
    """Tell whether any price of a pod is a range."""
    prices = [getattr(costs, name) for name in costs.model_fields_set]
    prices += [*costs.other_year.values(), *(item.price for item in bill)]
    return any(isinstance(price, PriceRange) for price in prices)
