"""The front door of design, asked as a program does: requests in, results with their documents out, nothing touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from podwright import design as door
from podwright.design import CapacityPlan, DatasetFacts, JobPrediction, JobRequest, RunFacts, StepMark
from podwright.spec import Refusal
from tests.unit.design.pods import designed


def run(name: str, nodes: int, step_s: float) -> RunFacts:
    """A run whose first attempt was slow, and of whose second rank 1 reported before rank 0."""

    def steps() -> Iterator[StepMark]:
        yield from (StepMark((0, 0), 0, 100.0 * number, number) for number in range(5))
        yield from (StepMark((0, 1), 1, 50.0 * number, number) for number in range(5))
        yield from (StepMark((0, 1), 0, 1000 + step_s * number, number) for number in range(5))

    return RunFacts(name, nodes, nodes * 8, steps(), {"batch": 64.0 * nodes})


def test_every_name_is_there_and_costs_nothing_until_it_is_used() -> None:
    assert [name for name in door.__all__ if not hasattr(door, name)] == []
    probe = "import sys, podwright.design; print([name for name in sys.modules if 'podwright.design.' in name])"
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True).stdout == "[]\n"


def test_training_is_predicted_from_what_runs_reported() -> None:
    pod = designed(20).pod
    prediction = JobPrediction.of(pod, JobRequest(nodes=8, runs=[run("small", 2, 0.5)]))
    training = prediction.as_json()["training"]
    assert training["from"][0]["step_s"] == pytest.approx(0.5)
    assert training["from"][0]["batch"] == 128
    assert [row["nodes"] for row in training["nodes"]] == [2, 4, 8]
    two = JobPrediction.of(pod, JobRequest(nodes=8, runs=[run("small", 2, 0.5), run("large", 4, 0.6)]))
    assert two.training is not None
    assert [source.run for source in two.training.sources] == ["small", "large"]
    assert JobPrediction.of(pod, JobRequest(hosts="dgx[0001-0004]")).as_json()["training"] is None


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (JobRequest(), "say which nodes"),
        (JobRequest(nodes=2, hosts="dgx0001"), "say which nodes"),
        (JobRequest(nodes=2, pods=0), "nodes and pods are whole positive numbers"),
        (JobRequest(nodes=21), "the pod pod has 20 nodes with GPUs, not 21"),
        (JobRequest(nodes=4, runs=[RunFacts("silent", 2, 16, [], {})]), "silent has not reported two steps"),
        (JobRequest(nodes=4, runs=[], batch=0), "a batch is a whole positive number"),
    ],
)
def test_what_cannot_be_predicted_is_refused(request_: JobRequest, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        JobPrediction.of(designed(20).pod, request_)


def test_growth_goes_into_the_document_and_the_files() -> None:
    small, large = designed(20), designed(40)
    with pytest.raises(Refusal, match="moves 184 cables that are in use"):
        large.growth_from(small)
    growth = large.growth_from(small, allow_moves=True)
    assert large.as_json(growth=growth)["growth"] == growth.as_json()
    rows = large.files(growth)["growth.csv"].splitlines()
    assert len(rows) == 1 + len(growth.added) + growth.disturbs


def test_a_design_is_compared_with_itself_and_without_a_cable() -> None:
    design = designed(20)
    text = design.files()["compute.ibnetdiscover"]
    assert design.check({"seen": text}, "seen").as_json() == {"fabrics": ("compute",), "cables": 320, "findings": []}
    (finding,) = design.check({"seen": designed(19).files()["compute.ibnetdiscover"]}, "seen").findings
    assert (finding.kind, finding.message) == ("gone", "dgx0020 is not there (8 cables)")


def test_capacity_stands_beside_what_a_dataset_brought() -> None:
    plan = CapacityPlan.read("name: few\nfleet: {cars: 1, hours_per_day: 1, sensors: [{rate: 1MB/s}]}\n", "few.yaml")
    brought = DatasetFacts("drives", 3, 10**12, 18 * 10**8, 0.5, {"new": 4})
    figures = plan.beside(brought, {"hot": 2 * 10**12}).as_json()["dataset"]
    assert figures == {
        "bytes_per_day": 18 * 10**8,
        "share_of_model": 0.5,
        "kept_share": 0.5,
        "kept_bytes_per_day": 9 * 10**8,
        "days_until_hot_is_full": 1111,
    }
