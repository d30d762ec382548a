"""The pod, the workload and the hardware library: what the two files say, checked and resolved.

Names are imported when they are first used: pydantic costs more than the rest of a command's start, and a refusal or
a host list does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.spec.late import late_names

if TYPE_CHECKING:
    from podwright.spec.hardware import ComputeFabric, NodeModel, StorageModel, SwitchModel, library, node_model
    from podwright.spec.hostlist import expand_hosts, fold_hosts
    from podwright.spec.loader import KINDS, load, load_pod, load_workload, schema
    from podwright.spec.pod import Costs, KubernetesScheduler, NodeGroup, Pod, Racks, SlurmScheduler, Storage
    from podwright.spec.problems import Problem, Refusal, refuse
    from podwright.spec.workload import Build, Goal, Workload, points, workload_json

__all__ = [
    "KINDS",
    "Build",
    "ComputeFabric",
    "Costs",
    "Goal",
    "KubernetesScheduler",
    "NodeGroup",
    "NodeModel",
    "Pod",
    "Problem",
    "Racks",
    "Refusal",
    "SlurmScheduler",
    "Storage",
    "StorageModel",
    "SwitchModel",
    "Workload",
    "expand_hosts",
    "fold_hosts",
    "library",
    "load",
    "load_pod",
    "load_workload",
    "node_model",
    "points",
    "refuse",
    "schema",
    "workload_json",
]
__getattr__ = late_names(__name__, __file__)


def __dir__() -> list[str]:
    return sorted(__all__)
