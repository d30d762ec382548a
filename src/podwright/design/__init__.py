"""Design: a pod's fabrics, sized, wired and drawn; what they give to a job. Pure: facts in, data and text out.

`Design.of(pod)` is a pod designed; `JobPrediction`, `SeriesPrediction` and `CapacityPlan` say what one gives, and what
it takes. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.design.design import Design
    from podwright.design.predict.capacity import CapacityPlan, DatasetFacts
    from podwright.design.predict.job_prediction import JobPrediction, JobRequest
    from podwright.design.predict.series_prediction import SeriesPrediction
    from podwright.design.predict.training import RunFacts, StepMark

__all__ = [
    "CapacityPlan",
    "DatasetFacts",
    "Design",
    "JobPrediction",
    "JobRequest",
    "RunFacts",
    "SeriesPrediction",
    "StepMark",
]
__getattr__ = late_names(__name__, __file__)
