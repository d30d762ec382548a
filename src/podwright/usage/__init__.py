"""How clusters are used: what waits and why, GPU hours that were used and wasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.analysis.lemons import LemonNode
    from podwright.engines.usage import QueuedJob
    from podwright.usage.failing import lemon_nodes
    from podwright.usage.gather import TargetQueue, TargetWaste, queues, wasted
    from podwright.usage.spending import spent
    from podwright.usage.waste import JobUse, Use, Waste

__all__ = [
    "JobUse",
    "LemonNode",
    "QueuedJob",
    "TargetQueue",
    "TargetWaste",
    "Use",
    "Waste",
    "lemon_nodes",
    "queues",
    "spent",
    "wasted",
]

__getattr__ = late_names(__name__, __file__)
