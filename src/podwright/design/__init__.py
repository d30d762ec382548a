"""Design: a pod's fabrics, sized, wired and drawn; what they give to a job. Pure: facts in, data and text out.

`Design.of(pod)` is a pod designed; `JobPrediction`, `SeriesPrediction` and `CapacityPlan` say what one gives, and what
it takes. Names are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.design.bom import Item
    from podwright.design.check import Checked
    from podwright.design.design import Design
    from podwright.design.growth import Growth
    from podwright.design.growth_steps import GrowthStep
    from podwright.design.losses import Loss
    from podwright.design.predict.acceptance import AcceptanceSheet
    from podwright.design.predict.capacity import CapacityPlan, DatasetFacts
    from podwright.design.predict.job_prediction import JobPrediction, JobRequest
    from podwright.design.predict.placement import Placement
    from podwright.design.predict.scaling import Range
    from podwright.design.predict.scaling_errors import Error
    from podwright.design.predict.series import Series
    from podwright.design.predict.series_prediction import SeriesPrediction
    from podwright.design.predict.training import RunFacts, StepMark, TrainingPrediction
    from podwright.design.racks import model_name
    from podwright.design.sizing import ComputeSize
    from podwright.design.sizing_storage import StorageSize
    from podwright.design.sweep import PodSize, Sweep
    from podwright.design.wiring import Cable

__all__ = [
    "AcceptanceSheet",
    "Cable",
    "CapacityPlan",
    "Checked",
    "ComputeSize",
    "DatasetFacts",
    "Design",
    "Error",
    "Growth",
    "GrowthStep",
    "Item",
    "JobPrediction",
    "JobRequest",
    "Loss",
    "Placement",
    "PodSize",
    "Range",
    "RunFacts",
    "Series",
    "SeriesPrediction",
    "StepMark",
    "StorageSize",
    "Sweep",
    "TrainingPrediction",
    "model_name",
]
__getattr__ = late_names(__name__, __file__)
