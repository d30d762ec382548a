"""A run that comes after another: made suspended and marked, and released by one patch that only the mark allows."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from podwright import spec
from podwright.clients.kubernetes.kinds import BY_NAME
from podwright.engines.base import Request
from podwright.engines.kubernetes import KubernetesEngine
from podwright.engines.kubernetes.facts import facts_from_json
from podwright.engines.kubernetes.hold import MAKING, held_reason, held_run, hold, release_patch
from podwright.engines.kubernetes.plan import KubernetesJob
from tests.fixtures.inputs import inputs
from tests.paths import CASES

CASE_OF_KIND = {"Job": "ranks-claim", "MPIJob": "dgx1-16x1", "JobSet": "jobset", "TrainJob": "trainjob"}


def planned(case: str, after: str | None) -> dict[str, Any]:
    """The run's own object, as it is planned for a case of the golden files."""
    job = plan_of(case, after)
    return copy.deepcopy(job.objects[job.run_id][-1])


def plan_of(case: str, after: str | None = None) -> KubernetesJob:
    """The plan for a case of the golden files."""
    folder = CASES / "kubernetes" / case
    row = json.loads((folder / "facts.json").read_text())
    workload, pod = spec.load_workload(folder / "workload.yaml"), spec.load_pod(folder / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    data = inputs(row.get("data", {"frames": "frames"}))
    request = Request(row["run_id"], workload, pod, ({},), row.get("code"), data, after=after)
    job = KubernetesEngine(pod, scheduler).plan(request, facts_from_json(row["facts"]))
    assert isinstance(job, KubernetesJob)
    return job


def patched(made: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """The object after a JSON patch of the steps that a release takes."""
    after = copy.deepcopy(made)
    for step in steps:
        names = [name.replace("~1", "/").replace("~0", "~") for name in step["path"].strip("/").split("/")]
        place = after
        for name in names[:-1]:
            place = place[name]
        if step["op"] == "test":
            assert place[names[-1]] == step["value"]
        elif step["op"] == "remove":
            del place[names[-1]]
        else:
            assert step["op"] == "add" or names[-1] in place
            place[names[-1]] = step["value"]
    return after


def suspended(made: dict[str, Any]) -> bool | None:
    """What the field says that keeps an object of this kind from starting."""
    fields = made["spec"]
    if made["kind"] == "MPIJob":
        fields = fields["runPolicy"]
    value: bool | None = fields.get("suspend")
    return value


@pytest.mark.parametrize("kind", CASE_OF_KIND)
def test_a_run_that_comes_after_another_is_made_suspended_and_marked(kind: str) -> None:
    made = planned(CASE_OF_KIND[kind], "first-2222")
    assert (made["kind"], suspended(made)) == (kind, True)
    assert made["metadata"]["annotations"]["podwright.dev/held"] == "after"
    assert held_run(made) == "first-2222"
    assert suspended(planned(CASE_OF_KIND[kind], None)) is None


@pytest.mark.parametrize("kind", CASE_OF_KIND)
def test_reasons_are_taken_away_one_after_the_other(kind: str) -> None:
    made = planned(CASE_OF_KIND[kind], "first-2222")
    half_made = copy.deepcopy(made)
    hold(BY_NAME[kind], half_made, MAKING)
    assert (held_reason(half_made), suspended(half_made)) == (MAKING, True)
    assert patched(half_made, release_patch(BY_NAME[kind], half_made)) == made


def test_the_mark_of_an_older_release_is_the_run_that_comes_first() -> None:
    made = {"metadata": {"annotations": {"podwright.dev/held": "first-2222"}}}
    assert (held_reason(made), held_run(made)) == ("after", "first-2222")


@pytest.mark.parametrize("kind", ["Job", "MPIJob"])
def test_released_it_is_what_it_would_have_been(kind: str) -> None:
    made = planned(CASE_OF_KIND[kind], "first-2222")
    released = patched(made, release_patch(BY_NAME[kind], made))
    assert suspended(released) is False
    assert released["metadata"]["annotations"] == {}
    assert released["metadata"]["labels"] == planned(CASE_OF_KIND[kind], None)["metadata"]["labels"]


@pytest.mark.parametrize("kind", ["JobSet", "TrainJob"])
def test_a_run_with_a_queue_joins_it_when_it_is_released_and_is_resumed_by_kueue(kind: str) -> None:
    made = planned(CASE_OF_KIND[kind], "first-2222")
    assert "kueue.x-k8s.io/queue-name" not in made["metadata"]["labels"]
    released = patched(made, release_patch(BY_NAME[kind], made))
    assert released["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
    assert released["metadata"]["annotations"] == {}
    assert suspended(released) is True
