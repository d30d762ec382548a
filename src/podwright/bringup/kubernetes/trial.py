"""Starts the test of a namespace that was granted: a container as runs have them, and what it saw."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.bringup.kubernetes.openshift import gpu_test
from podwright.clients.kubernetes.api import Api, asked_to
from podwright.clients.kubernetes.apply import reach
from podwright.clients.kubernetes.paths import path_of_object
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.kubernetes.grant import GrantRequest
    from podwright.spec import KubernetesScheduler, Pod

GPU = "nvidia.com/gpu"
_OVER = ("Succeeded", "Failed")
_PATIENCE_S = 600.0
_NOBODY = 65534


def resources_of(pod: Pod, scheduler: KubernetesScheduler) -> dict[str, str | int]:
    """Return what the test asks for: one GPU where the hosts have any."""
    models = [pod.model_of(host) for host in pod.scheduler_hosts(scheduler)]
    return {GPU: 1} if any(model.gpus for model in models) else {}


def test_of(image: str, namespace: str, resources: dict[str, str | int], dialect: str) -> dict[str, Any]:
    """Return the test; OpenShift chooses who it runs as, and elsewhere it is nobody."""
    test = gpu_test(image, namespace, resources)
    if dialect != "openshift":
        test["spec"]["securityContext"]["runAsUser"] = _NOBODY
    return test


@dataclass(frozen=True)
class ImageTrial:
    """How a test ended, where, and what it printed."""

    phase: str
    host: str | None
    lines: list[str]


def try_image(request: GrantRequest, image: str) -> ImageTrial:
    """Start an image in a namespace that was granted, as a run would be."""
    resources = resources_of(request.pod, request.scheduler)
    with closing(reach(request.scheduler)) as api:
        return run_test(api, test_of(image, request.namespace, resources, request.scheduler.dialect))


def run_test(api: Api, test: dict[str, Any]) -> ImageTrial:
    """Run a test to its end and take it away again."""
    path = path_of_object(test)
    with asked_to("try the image"):
        api.delete(path)
        _wait(api, path, lambda found: found is None, "is being taken away")
        api.apply(path, test)
        ended = _wait(api, path, _is_over, "does not end")
        said = api.text(f"{path}/log").decode("utf-8", "replace")
        api.delete(path)
    assert ended is not None
    return ImageTrial(ended["status"]["phase"], ended["spec"].get("nodeName"), said.splitlines())


def _is_over(found: dict[str, Any] | None) -> bool:
    return found is not None and found.get("status", {}).get("phase") in _OVER


def _wait(api: Api, path: str, is_so: Any, reason: str) -> dict[str, Any] | None:
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        found = api.find(path)
        if is_so(found):
            return found
        if time.monotonic() > until_s:
            raise refuse(
                f"the test {reason}: {reason_of_wait(found)}", hint="`kubectl describe` has the rest", exit_code=1
            )
        time.sleep(1)


def reason_of_wait(found: dict[str, Any] | None) -> str:
    """Return why a Kubernetes pod has not begun or ended, as its status tells it."""
    status = (found or {}).get("status", {})
    for container in status.get("containerStatuses", []):
        waiting = container.get("state", {}).get("waiting")
        if waiting:
            return f"{waiting.get('reason')}: {waiting.get('message', '')}".rstrip(": ")
    for condition in status.get("conditions", []):
        if condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return str(status.get("phase", "it is not there"))
