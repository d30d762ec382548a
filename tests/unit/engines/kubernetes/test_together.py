"""Which run gives its nodes back, which tries again, and which point of a sweep may start."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.clients.kubernetes.kinds import BY_NAME
from podwright.clients.kubernetes.quantities import moment
from podwright.engines.kubernetes.gang import give_back_patch, is_oldest, may_join, may_try_again, pause_s, short_since
from podwright.engines.kubernetes.resources import RdmaShare
from podwright.engines.kubernetes.states import seen
from tests.unit.engines.kubernetes.test_held import patched, plan_of

SINCE = "2026-11-17T15:00:00Z"


def job(name: str, made: int = 0, held: str = "", **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "creationTimestamp": f"2026-11-17T15:00:{made:02}Z"}
    metadata |= {"resourceVersion": "7", "labels": {}, "annotations": {"podwright.dev/owner": "x"}}
    if held:
        metadata["annotations"]["podwright.dev/held"] = held
        spec["suspend"] = True
    return {"kind": "Job", "metadata": metadata, "spec": spec, "status": {}}


PLACED: dict[str, Any] = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
LEFT: dict[str, Any] = {
    "status": {
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": SINCE}
        ]
    }
}


@pytest.mark.parametrize(
    ("pods", "is_short"),
    [([PLACED, LEFT], True), ([LEFT, LEFT], False), ([PLACED, PLACED], False), ([PLACED], False), ([], False)],
)
def test_a_run_is_short_when_it_holds_nodes_and_finds_no_others(pods: list[Any], is_short: bool) -> None:
    assert (short_since(job("a"), pods) == moment(SINCE)) is is_short


def test_what_is_suspended_over_or_in_a_queue_is_not_short() -> None:
    done = {**job("a"), "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    queued = job("a")
    queued["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "research"
    for other in (job("a", held="after"), job("a", suspend=True), done, queued):
        assert short_since(other, [PLACED, LEFT]) is None


def test_the_oldest_that_wants_nodes_never_yields() -> None:
    first, second, suspended = job("a", 5), job("b", 6), job("c", 1, suspend=True)
    assert is_oldest(first, [suspended, second, first])
    assert not is_oldest(second, [suspended, second, first])


def test_what_is_given_back_is_suspended_marked_and_tried_again_later() -> None:
    made = job("a")
    held = patched(made, [step for step in give_back_patch(BY_NAME["Job"], made, 1000.0, 30.0) if step["op"] != "test"])
    assert held["spec"]["suspend"] is True
    until = float(held["metadata"]["annotations"]["podwright.dev/held-until"])
    assert 1015 <= until <= 1045
    assert (may_try_again(held, until - 1), may_try_again(held, until)) == (False, True)
    assert "gave its nodes back, as not all of them were free; tries again at" in seen(held, []).reason
    assert not may_try_again(job("a", suspend=True), until), "what a person suspended stays so"


def test_each_pause_is_about_twice_the_one_before_and_bounded() -> None:
    assert 0.5 * 30 <= pause_s("a", 0, 30.0) <= 1.5 * 30
    assert 0.5 * 240 <= pause_s("a", 3, 30.0) <= 1.5 * 240
    assert pause_s("a", 40, 30.0) <= 1.5 * 600
    assert pause_s("a", 0, 30.0) != pause_s("b", 0, 30.0)


def test_points_join_in_the_order_of_their_sweep_as_others_end() -> None:
    running = job("a-1")
    waiting = [job("a-10", 2, "parallel"), job("a-9", 3, "parallel")]
    assert [point["metadata"]["name"] for point in may_join([running, *waiting], 2)] == ["a-9"]
    assert may_join([running, *waiting], 1) == []
    assert seen(waiting[0], []).reason == "waits until fewer points of its sweep run"


@pytest.mark.parametrize("reason", ["making", "after", "together"])
def test_a_point_keeps_its_place_while_it_waits_for_something_else(reason: str) -> None:
    first, second, third = job("a-1", held=reason), job("a-2", held=reason), job("a-3", held="parallel")
    second["metadata"]["annotations"]["podwright.dev/held-then"] = "parallel"
    assert may_join([first, second, third], 1) == []
    assert may_join([first, second, third], 2) == [third]


def test_a_run_with_some_of_the_gpus_has_some_of_the_ports() -> None:
    names = tuple(f"rdma/shared_ib{number}" for number in range(8))
    shares = [tuple(RdmaShare(names, 2).of(f"run-{number}")) for number in range(20)]
    assert {len(share) for share in shares} == {2}
    assert len(set(shares)) > 1, "runs that share a node have ports of their own"
    assert tuple(RdmaShare(names, 8).of("run")) == names
    assert RdmaShare().of("run") == {}


def test_memory_that_cannot_be_kept_in_place_is_said_with_what_gives_it() -> None:
    (sentence,) = [gap for gap in plan_of("volcano").gaps if "IPC_LOCK" in gap]
    assert "`podwright pod grant adas --namespace vision --rdma` gives it" in sentence
