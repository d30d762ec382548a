"""Bad days of a real Kubernetes: what a run says, and that it is neither lost nor doubled."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podwright.engines.kubernetes.claim_reader import is_ready
from podwright.lab.kubernetes import KubernetesLab
from podwright.launch import Run
from podwright.spec import Refusal
from tests.contract.sites import END_S, KubernetesSite, kubernetes_session, until
from tests.real.clients import pods
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES


@pytest.fixture
def kubernetes(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[KubernetesSite]:
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


@contextmanager
def struck(site: KubernetesSite, strike: Callable[[str], None], host: str) -> Iterator[None]:
    """Something of a node is gone until the end."""
    strike(host)
    try:
        yield
    finally:
        site.lab.heal(host)


def test_a_kubernetes_pod_that_is_deleted_comes_back(kubernetes: KubernetesSite) -> None:
    run = kubernetes.start("--steps 6 --hold-at 3", nodes=2, retries=1)
    kubernetes.wait_step(run, 3)
    victim = second(kubernetes, run.id)
    kubernetes.lab.kubectl("delete", "pod", victim["metadata"]["name"], "--namespace=lab", "--wait=false")
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    assert record.results["step"] == 6


def test_what_a_run_needs_is_made_again_where_somebody_has_deleted_it(kubernetes: KubernetesSite) -> None:
    """Its new Kubernetes pod finds neither its order, nor its token, nor the first node."""
    run = kubernetes.start("--steps 6 --hold-at 3", nodes=2, retries=1)
    kubernetes.wait_step(run, 3)
    victim = second(kubernetes, run.id)["metadata"]["name"]
    kubernetes.lab.kubectl("delete", "configmap,service,secret", run.id, "--namespace=lab")
    kubernetes.lab.kubectl("delete", "pod", victim, "--namespace=lab", "--wait=false")
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()


def test_a_run_that_somebody_else_deletes_is_lost_and_not_cancelled(kubernetes: KubernetesSite) -> None:
    run = kubernetes.start("--steps 6 --hold-at 3", nodes=2)
    kubernetes.wait_step(run, 3)
    kubernetes.lab.kubectl("delete", "job", run.id, "--namespace=lab", "--wait=false")
    record = until(lambda: (record := run.record()).is_final and record, "it is over", END_S)
    assert (record.state, record.reason) == ("lost", "deleted by somebody else")


@pytest.fixture
def patient(kubernetes: KubernetesSite) -> KubernetesSite:
    """A client that waits for an API server as long as that takes to come back, on a busy machine too."""
    kubernetes.session = kubernetes_session(kubernetes.home, budget_s=END_S)
    return kubernetes


def test_an_api_server_that_restarts_loses_no_run(patient: KubernetesSite) -> None:
    kubernetes = patient
    run = kubernetes.start("--steps 60 --pause 0.2", nodes=2)
    kubernetes.wait_step(run, 3)
    kubernetes.lab.restart_controller()
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 1), run.explain()


def test_an_api_server_that_restarts_during_submit_doubles_no_run(patient: KubernetesSite) -> None:
    kubernetes = patient
    restart = threading.Thread(target=kubernetes.lab.restart_controller)
    runs = []
    for number in range(6):
        if number == 2:
            restart.start()
        runs.append(kubernetes.start("--steps 2", resources="{cpus: 1}"))
    restart.join()
    assert [run.wait(END_S).state for run in runs] == ["succeeded"] * 6
    # A job controller that starts again may make a second Kubernetes pod of one Job, before it has seen the first.
    for run in runs:
        owners = {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods(kubernetes.lab, run.id)}
        assert len(owners) == 1


def test_an_image_that_is_not_there(kubernetes: KubernetesSite) -> None:
    image = kubernetes.lab.image.replace("lab/base", "lab/nothing")
    run = kubernetes.start("--steps 2", image=image)
    assert reason(run, "cannot be fetched").startswith(f"waits: the image {image} cannot be fetched: ")
    run.cancel()
    assert run.wait(END_S).state == "cancelled"


def test_a_quota_that_is_too_small(kubernetes: KubernetesSite) -> None:
    kubernetes.lab.kubectl("create", "quota", "none", "--hard=pods=0", "--namespace=lab", admin=True)
    try:
        run = kubernetes.start("--steps 2")
        assert reason(run, "quota").startswith("waits: the quota none is too small for a node of it (asked pods=1, ")
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
def test_a_kubelet_that_stays_away_holds_no_run_up(kubernetes: KubernetesSite) -> None:
    """Kubernetes gives its node up and fills the place anew, while the containers there go on to the end."""
    run = kubernetes.start("--steps 400 --pause 0.2", nodes=2, retries=1)
    kubernetes.wait_step(run, 3)
    host = second(kubernetes, run.id)["spec"]["nodeName"]
    with struck(kubernetes, kubernetes.lab.kill_kubelet, host):
        record = run.wait(END_S)
    assert record.state == "succeeded", run.explain()
    told = kubernetes.steps(run, 0)
    assert sorted(set(told)) == list(range(1, 401))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("job", {}),
        pytest.param("jobset", {"kubernetes": "{kind: jobset}"}, marks=pytest.mark.nightly),
        pytest.param("mpijob", {"launcher": "mpi"}, marks=pytest.mark.nightly),
    ],
)
def test_a_run_that_is_suspended_waits_and_goes_on(
    kubernetes: KubernetesSite, kind: str, fields: dict[str, str]
) -> None:
    """As Kueue does when the quota goes to somebody else: no retry is spent on it."""
    run = kubernetes.start("--steps 16 --hold-at 12", nodes=2, **fields)
    kubernetes.wait_step(run, 12)
    suspend(kubernetes, kind, run, True)
    assert reason(run, "suspended") == "is suspended"
    assert run.record().state == "pending"
    until(lambda: not pods(kubernetes.lab, run.id), "all its Kubernetes pods are gone")
    suspend(kubernetes, kind, run, False)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    told = kubernetes.steps(run, 0)
    assert sorted(set(told)) == list(range(1, 17))
    assert told.count(1) == 1, "it began anew instead of going on from its checkpoint"


def test_a_run_without_a_claim_that_is_suspended_begins_anew(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> None:
    """There is no checkpoint. What the first copy sent and what the second one does are told apart."""
    site = KubernetesSite(kubernetes_cluster, tmp_path, claim=False)
    try:
        run = site.start("--steps 150 --pause 0.2")
        site.wait_step(run, 5)
        suspend(site, "job", run, True)
        assert reason(run, "suspended") == "is suspended"
        until(lambda: not pods(site.lab, run.id), "its Kubernetes pod is gone")
        suspend(site, "job", run, False)
        record = run.wait(END_S)
    finally:
        site.close()
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    assert record.results["step"] == 150
    assert len(list(run.folder.record_path.glob("n0.r*"))) == 2


def suspend(site: KubernetesSite, kind: str, run: Run, on: bool) -> None:
    spec = {"runPolicy": {"suspend": on}} if kind == "mpijob" else {"suspend": on}
    words = ("patch", kind, run.id, "--namespace=lab", "--type=merge", f"--patch={json.dumps({'spec': spec})}")
    done = site.lab.kubectl(*words, admin=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("victim", ["second", "reader"])
def test_a_node_that_is_lost(kubernetes: KubernetesSite, victim: str) -> None:
    """A reader of the claim that is lost with its node is replaced, though Kubernetes cannot say that it is gone."""
    if victim == "reader":
        assert kubernetes.start("--steps 1").wait(END_S).state == "succeeded"
    run = kubernetes.start("--steps 150 --pause 0.2", nodes=2, retries=1)
    kubernetes.wait_step(run, 3)
    host = (second(kubernetes, run.id) if victim == "second" else reader(kubernetes))["spec"]["nodeName"]
    with struck(kubernetes, kubernetes.lab.kill_node, host):
        record = run.wait(END_S)
    assert record.state == "succeeded", run.explain()
    assert record.attempts >= 2
