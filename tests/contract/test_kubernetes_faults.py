"""Bad days of a real Kubernetes: what a run says, and that it is neither lost nor doubled."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.kubernetes.reader import is_ready
from podwright.lab.kubernetes import Lab
from podwright.launch import Run
from podwright.spec import Refusal
from tests.contract.sites import KubernetesSite, until
from tests.real.clients import pods
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

END_S = 300.0
"""For the end of a run that has lost something; a machine that does other things too may take its time."""


@pytest.fixture
def kubernetes(kubernetes_cluster: Lab, tmp_path: Path) -> Iterator[KubernetesSite]:
    site = KubernetesSite(kubernetes_cluster, tmp_path)
    yield site
    site.close()


def second(site: KubernetesSite, run_id: str) -> dict[str, Any]:
    """The Kubernetes pod of node 1."""
    index = "batch.kubernetes.io/job-completion-index"
    return next(pod for pod in pods(site.lab, run_id) if pod["metadata"]["annotations"][index] == "1")


def reader(site: KubernetesSite) -> dict[str, Any]:
    """The Kubernetes pod that reads the claim and runs just now."""
    selector = "--selector=app.kubernetes.io/component=reader"
    found = site.lab.kubectl("get", "pods", "--namespace=lab", selector, "--output=json").stdout
    return next(pod for pod in json.loads(found)["items"] if is_ready(pod))


def reason(run: Run, words: str) -> str:
    """Why the run waits, once these words are in it."""
    return str(until(lambda: run.record().reason if words in run.record().reason else "", words))


def test_a_kubernetes_pod_that_is_deleted_comes_back(kubernetes: KubernetesSite) -> None:
    run = kubernetes.start("--steps 40 --pause 0.2", nodes=2, retries=1)
    kubernetes.wait_step(run, 3)
    victim = second(kubernetes, run.id)
    kubernetes.lab.kubectl("delete", "pod", victim["metadata"]["name"], "--namespace=lab", "--wait=false")
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    assert record.results["step"] == 40


def test_an_api_server_that_restarts_loses_no_run(kubernetes: KubernetesSite) -> None:
    run = kubernetes.start("--steps 60 --pause 0.2", nodes=2)
    kubernetes.wait_step(run, 3)
    kubernetes.lab.restart_controller()
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 1), run.explain()


def test_an_api_server_that_restarts_during_submit_doubles_no_run(kubernetes: KubernetesSite) -> None:
    restart = threading.Thread(target=kubernetes.lab.restart_controller)
    runs = []
    for number in range(6):
        if number == 2:
            restart.start()
        runs.append(kubernetes.start("--steps 2", resources="{cpus: 1}"))
    restart.join()
    assert [run.wait(END_S).state for run in runs] == ["succeeded"] * 6
    for run in runs:
        assert len(pods(kubernetes.lab, run.id)) == 1


def test_an_image_that_is_not_there(kubernetes: KubernetesSite) -> None:
    image = kubernetes.lab.image.replace("lab/base", "lab/nothing")
    run = kubernetes.start("--steps 2", image=image)
    assert reason(run, "cannot be fetched").startswith(f"waits: the image {image} cannot be fetched: ")
    run.cancel()
    assert run.wait(60).state == "cancelled"


def test_a_quota_that_is_used_up(kubernetes: KubernetesSite) -> None:
    kubernetes.lab.kubectl("create", "quota", "none", "--hard=pods=0", "--namespace=lab", admin=True)
    try:
        run = kubernetes.start("--steps 2")
        assert reason(run, "quota").startswith("waits: the quota none is used up (asked pods=1, ")
    finally:
        kubernetes.lab.kubectl("delete", "quota", "none", "--namespace=lab", admin=True)
    assert run.wait(END_S).state == "succeeded"


def test_a_namespace_without_rights(kubernetes: KubernetesSite) -> None:
    with pytest.raises(Refusal) as caught:
        kubernetes.start("--steps 2", kubernetes="{namespace: kube-system}")
    assert "you may not make Jobs, make ConfigMaps" in str(caught.value)


def test_a_kubelet_that_is_killed_loses_no_run(kubernetes: KubernetesSite) -> None:
    """Containers outlive it. A node that is silent for a moment is not given up."""
    run = kubernetes.start("--steps 150 --pause 0.1", nodes=2)
    kubernetes.wait_step(run, 3)
    host = second(kubernetes, run.id)["spec"]["nodeName"]
    kubernetes.lab.kill_kubelet(host)
    kubernetes.lab.heal(host)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 1), run.explain()


@pytest.mark.nightly
@pytest.mark.parametrize("victim", ["second", "reader"])
def test_a_node_that_is_lost(kubernetes: KubernetesSite, victim: str) -> None:
    """A reader of the claim that is lost with its node is replaced, though Kubernetes cannot say that it is gone."""
    if victim == "reader":
        assert kubernetes.start("--steps 1").wait(END_S).state == "succeeded"
    run = kubernetes.start("--steps 150 --pause 0.2", nodes=2, retries=1)
    kubernetes.wait_step(run, 3)
    host = (second(kubernetes, run.id) if victim == "second" else reader(kubernetes))["spec"]["nodeName"]
    kubernetes.lab.kill_node(host)
    try:
        record = run.wait(END_S)
    finally:
        kubernetes.lab.heal(host)
    assert record.state == "succeeded", run.explain()
    assert record.attempts >= 2
