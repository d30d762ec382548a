"""Design: a pod's fabrics, sized, wired and drawn; what they give to a job. Pure: facts in, data and text out.

`Design.of(pod)` is a pod designed; `JobPrediction`, `SeriesPrediction` and `CapacityPlan` say what one gives, and what
it takes. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podwright.design.design import Design
    from podwright.design.predict.capacity import CapacityPlan, DatasetFacts
    from podwright.design.predict.job_prediction import JobPrediction, JobRequest
    from podwright.design.predict.series_prediction import SeriesPrediction
    from podwright.design.predict.training import RunFacts

_HOMES = {
    "CapacityPlan": "predict.capacity",
    "DatasetFacts": "predict.capacity",
    "Design": "design",
    "JobPrediction": "predict.job_prediction",
    "JobRequest": "predict.job_prediction",
    "RunFacts": "predict.training",
    "SeriesPrediction": "predict.series_prediction",
}

__all__ = ["CapacityPlan", "DatasetFacts", "Design", "JobPrediction", "JobRequest", "RunFacts", "SeriesPrediction"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = import_module(f"{__name__}.{_HOMES[name]}")
    return getattr(room, name)
