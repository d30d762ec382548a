"""Goodput: every second of every allocated GPU of a run in exactly one class, from its events alone. Pure.

`GoodputLedger` takes events: `attempts` puts the moments of each attempt together, `tellings` what its ranks told,
`stretches` divides its time, `keeping` says what of it was lost, `nodes` how long each node was held; `account` is the
sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.runs.goodput.account import AttemptLane, Goodput, sum_of
    from podwright.runs.goodput.classes import CLASSES
    from podwright.runs.goodput.ledger import GoodputLedger

__all__ = ["CLASSES", "AttemptLane", "Goodput", "GoodputLedger", "sum_of"]

__getattr__ = late_names(__name__, __file__)
