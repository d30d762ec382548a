"""How clusters are used: what waits and why, GPU hours that were used and wasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.engines.usage import QueuedJob
    from podwright.usage.gather import TargetQueue, TargetWaste, queues, wasted
    from podwright.usage.waste import JobUse, Use, Waste

__all__ = [
    "JobUse",
    "QueuedJob",
    "TargetQueue",
    "TargetWaste",
    "Use",
    "Waste",
    "queues",
    "wasted",
]

__getattr__ = late_names(__name__, __file__)
