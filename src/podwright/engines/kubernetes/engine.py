"""The Kubernetes engine: plans and renders plain objects, and gives them to the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from podwright.engines.base import Files, Job, Request
from podwright.engines.kubernetes.facts import facts_from_json
from podwright.engines.kubernetes.plan import KubernetesJob, plan_job, render_job

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod

LACKS = {
    "after": "Kubernetes cannot let a job wait for another; `podwright wait` before the next run does",
}
NO_CLAIM = "retries over several nodes need a checkpoint folder that all of them share: name a `claim:` in the pod file"


class KubernetesEngine:
    """One pod's Kubernetes. What it asked the cluster a moment ago answers for all runs."""

    name = "kubernetes"
    lag_s = 15.0

    def __init__(self, pod: Pod, scheduler: KubernetesScheduler) -> None:
        self._pod, self._scheduler = pod, scheduler

    def lacks(self) -> Mapping[str, str]:
        return LACKS if self._scheduler.claim else {**LACKS, "shared": NO_CLAIM}

    def plan(self, request: Request, facts: Mapping[str, Any]) -> KubernetesJob:
        return plan_job(request, self._pod, self._scheduler, facts_from_json(facts))

    def render(self, job: Job) -> Files:
        assert isinstance(job, KubernetesJob)
        return render_job(job)
