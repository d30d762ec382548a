"""What the test of a granted namespace asks for, and why it waits."""

from __future__ import annotations

from typing import Any

import pytest

from podwright.bringup.kubernetes.trial import reason_of_wait, resources_of
from podwright.spec import Pod


@pytest.mark.parametrize(("model", "resources"), [("dgx-a100", {"nvidia.com/gpu": 1}), ("cpu-server", {})])
def test_a_gpu_is_asked_for_where_there_are_any(model: str, resources: dict[str, int]) -> None:
    given = {"name": "a", "nodes": [{"hosts": "n1", "model": model}], "schedulers": [{"kind": "kubernetes"}]}
    pod = Pod.model_validate(given)
    scheduler = pod.schedulers[0]
    assert scheduler.kind == "kubernetes"
    assert resources_of(pod, scheduler) == resources


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]},
            "ErrImagePull: no such image",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/2 nodes: Insufficient gpu"}]},
            "0/2 nodes: Insufficient gpu",
        ),
        ({"phase": "Pending"}, "Pending"),
        ({}, "it is not there"),
    ],
)
def test_why_it_waits(status: dict[str, Any], reason: str) -> None:
    assert reason_of_wait({"status": status} if status else None) == reason
