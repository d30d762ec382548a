"""Costs: what a pod costs, what a run cost, and owning against renting.

Every amount has its origin, and what nobody gave a price for is named. Nothing here starts or asks anything. Names are
imported when they are first used: they need all of design, and a run on this machine does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.costs.bills import OwnOrRent, PodBill, RunBill, own_or_rent, pod_bill, run_bill, runs_bill, use_of
    from podwright.costs.budgets import Spending, TeamSpending
    from podwright.costs.ownership import CostSheet, PodCosts, Price, check_priced, pod_price
    from podwright.costs.prices import PriceTable, price_tables
    from podwright.costs.run_costs import RunCosts, cost_of_run

__all__ = [
    "CostSheet",
    "OwnOrRent",
    "PodBill",
    "PodCosts",
    "Price",
    "PriceTable",
    "RunBill",
    "RunCosts",
    "Spending",
    "TeamSpending",
    "check_priced",
    "cost_of_run",
    "own_or_rent",
    "pod_bill",
    "pod_price",
    "price_tables",
    "run_bill",
    "runs_bill",
    "use_of",
]
__getattr__ = late_names(__name__, __file__)
