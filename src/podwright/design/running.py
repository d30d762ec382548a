"""What a design costs while it stands: the electricity of its machines, and of what cools them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.design.bom import Item
    from podwright.spec import Costs

YEAR_H = 8760.0
YEARS = 5.0
"""How long a pod stands where it does not say."""


@dataclass(frozen=True, slots=True)
class Electricity:
    """The full draw of what is known, every hour of all years; `pue` is None where the pod does not give it."""

    power_w: float
    price_kwh: float
    years: float
    pue: float | None

    @property
    def machines(self) -> float:
        """Return what the machines draw, in the pod's currency."""
        return self.power_w / 1000 * YEAR_H * self.years * self.price_kwh

    @property
    def cooling(self) -> float | None:
        """Return what the building draws on top; None where nobody said."""
        if self.pue is None:
            return None
        return self.machines * (self.pue - 1)

    @property
    def amount(self) -> float:
        """Return both."""
        return self.machines + (self.cooling or 0.0)


def electricity(costs: Costs, items: Iterable[Item]) -> Electricity | None:
    """Return the electricity of a bill; None where its power or the price of a kilowatt hour is not known."""
    power_w = known_power_w(items)
    if costs.power_price_kwh is None or power_w is None:
        return None
    return Electricity(power_w, costs.power_price_kwh, costs.years or YEARS, costs.pue)


def known_power_w(items: Iterable[Item]) -> float | None:
    """Return the power of everything whose power is known; None where that is nothing."""
    known = [item.power_w * item.count for item in items if item.power_w is not None]
    if not known:
        return None
    return sum(known)
