"""What a job on some nodes of a pod gets of its wires, and what the training of runs would take there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.design.predict.acceptance import AcceptanceSheet
from podwright.design.predict.placement import Placement, first_hosts, place
from podwright.design.predict.training import RunFacts, TrainingPrediction
from podwright.spec.hostlist import expand_hosts
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import Pod


@dataclass(frozen=True, slots=True)
class JobRequest:
    """The nodes of a job: so many from the first, or these hosts, over so many pods; and runs of its training, if any.

    `batch` is the whole batch of a run that did not report it; `gradient_bytes` are all-reduced in a step.
    """

    nodes: int | None = None
    hosts: str | None = None
    pods: int = 1
    runs: Iterable[RunFacts] | None = None
    batch: int | None = None
    gradient_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class JobPrediction:
    """The acceptance sheet of a job's nodes, and of its training what the runs say."""

    sheet: AcceptanceSheet
    training: TrainingPrediction | None = None

    @classmethod
    def of(cls, pod: Pod, request: JobRequest) -> JobPrediction:
        """Predict a job, or refuse nodes that the pod does not have; nothing of the pod need stand yet."""
        placement, training = _placement(pod, request), None
        if request.runs is not None:
            training = TrainingPrediction.of(placement, request.runs, request.batch, request.gradient_bytes)
        return cls(AcceptanceSheet(placement), training)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `predict`."""
        training = self.training.as_json() if self.training else None
        return {"collectives": self.sheet.as_json(), "training": training}


def _placement(pod: Pod, request: JobRequest) -> Placement:
    nodes = request.nodes
    if (nodes is None) == (request.hosts is None):
        raise refuse("say which nodes", hint="give either --nodes N or --hosts dgx[001-016]")
    if request.pods < 1 or (nodes is not None and nodes < 1):
        raise refuse("nodes and pods are whole positive numbers", hint="--nodes 16")
    hosts = expand_hosts(request.hosts) if request.hosts else first_hosts(pod, nodes or 1)
    return place(pod, list(hosts), request.pods)
