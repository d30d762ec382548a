"""Runs on a real Kubernetes start once and end once, whenever their client or the API server dies."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest

from podwright import launch
from podwright.engines.kubernetes.outage import Patience
from podwright.lab.kubernetes import KubernetesLab
from podwright.launch import Run
from podwright.spec import Refusal
from tests.contract.sites import END_S, KubernetesSite, kubernetes_session, until
from tests.paths import ROOT
from tests.real.clients import BIN, Client, pod_of, pods
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

SMALL = "{cpus: 1, memory: 256MiB}"


@pytest.fixture
def site(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[KubernetesSite]:
    made = KubernetesSite(kubernetes_cluster, tmp_path)
    yield made
    made.close()


def ended_once(site: KubernetesSite, run: Run, steps: int) -> None:
    """The run succeeds in one attempt, and every step was told once."""
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 1), run.explain()
    told = site.steps(run)
    assert told == list(range(1, steps + 1))


def start_and_die(site: KubernetesSite, workload: Path, request: int) -> bool:
    """Whether the client was killed: after its last request there is none to be killed at."""
    words = [str(site.home.path), str(workload), site.target, str(request)]
    done = subprocess.run([sys.executable, "-m", "tests.contract.killed", *words], cwd=ROOT, check=False)
    assert done.returncode in (0, -9)
    return done.returncode != 0


@pytest.mark.slow
def test_a_client_that_is_killed_after_any_request_leaves_a_run_that_starts(site: KubernetesSite) -> None:
    workload = site.workload("--steps 2", resources=SMALL).path
    killed = 0
    for request in count(1):
        if not start_and_die(site, workload, request):
            break
        killed += 1
    runs = [site.adopt(path.name) for path in sorted(site.home.runs.iterdir())]
    assert len(runs) == killed + 1
    assert killed > 5, "the job, what it shares, its own files and its release are requests"
    for run in runs:
        ended_once(site, run, 2)
        assert len(pods(site.lab, run.id)) == 1


@pytest.mark.nightly
def test_points_of_a_killed_client_start_as_well(site: KubernetesSite) -> None:
    workload = site.workload("--steps 2", resources=SMALL, matrix="{seed: [1, 2]}").path
    for request in count(1):
        if not start_and_die(site, workload, request):
            break
    runs = [site.adopt(path.name) for path in site.home.runs.iterdir()]
    for run in runs:
        if run.points():
            assert run.wait(END_S).state == "succeeded", run.explain()
        else:
            ended_once(site, run, 2)


def at_request(number: int, strike: Callable[[], None]) -> Callable[[str, str], None]:
    """Strikes once, when the answer to this change of the cluster is there; the dry run comes before all of them."""
    changes: list[str] = []

    def answered(method: str, path: str) -> None:
        if method == "PATCH":
            changes.append(path)
            if len(changes) == number + 1:
                strike()

    return answered


@pytest.mark.slow
def test_an_api_server_that_dies_while_it_is_given_a_run(site: KubernetesSite) -> None:
    """The lab starts it again, as a cluster does: the client waits, and the run starts once."""
    dies = at_request(2, site.lab.kill_controller)
    session = kubernetes_session(site.home, dies, patience=Patience(come_back_s=END_S))
    run = launch.start(session, site.workload("--steps 2", resources=SMALL), site.target)
    ended_once(site, site.adopt(run.id), 2)


def says(client: Client, words: str, code: int) -> str:
    """All that a command prints, which ends with this code."""
    command = [str(BIN / "podwright"), *words.split()]
    done = subprocess.run(command, env=client.environ, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.slow
def test_an_api_server_that_stays_away(site: KubernetesSite, tmp_path: Path) -> None:
    """What is known is told, with the moment since when; nothing is lost, and the half-made run starts later."""
    client = Client(tmp_path)
    living = site.start("--steps 6 --hold-at 3", resources=SMALL)
    site.wait_step(living, 3)
    gone = at_request(2, lambda: site.lab.kill_controller(stays=True))
    impatient = kubernetes_session(site.home, gone, budget_s=1.0, patience=Patience(come_back_s=2.0))
    with pytest.raises(Refusal) as caught:
        launch.start(impatient, site.workload("--steps 2", resources=SMALL), site.target)
    try:
        assert caught.value.exit_code == 3
        half_made = site.adopt(site.home.resolve("last"))
        assert f"`podwright wait {half_made.id}` submits the rest once it answers again" in str(caught.value)
        commands = {"ps": 0, f"show {living.id}": 0, f"logs {living.id}": 0}
        commands |= {f"{word} {living.id}": 3 for word in ("cancel", "attach", "wait")}
        with ThreadPoolExecutor(len(commands)) as pool:
            said = dict(zip(commands, pool.map(lambda row: says(client, *row), commands.items()), strict=True))
        assert "not answered since" in said["ps"]
        assert f"{site.target} has not answered since" in said[f"show {living.id}"]
        assert "starts at step 0" in said[f"logs {living.id}"]
        control = next(row for row in site.lab.status() if row["role"] == "control plane")
        assert control["kubernetes"] == "without kube-apiserver"
    finally:
        healed = site.lab.heal()
    assert "control" in healed
    ended_once(site, half_made, 2)
    assert living.record().state == "running"


def test_a_token_that_is_refused_is_said(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_bytes(kubernetes_cluster.kubeconfig.read_bytes())
    client = Client(tmp_path, pod_of(kubernetes_cluster, tmp_path, kubeconfig=str(config)))
    site = KubernetesSite(kubernetes_cluster, tmp_path, known=True)
    run = site.start("--steps 6 --hold-at 3", resources=SMALL)
    site.wait_step(run, 3)
    config.write_text(_with_token(config.read_text(), "expired"))
    try:
        for words, code in ((f"show {run.id}", 0), ("ps", 0), (f"wait {run.id}", 3)):
            assert "the cluster does not know who you are" in says(client, words, code)
    finally:
        site.close()


def _with_token(text: str, token: str) -> str:
    import yaml

    row = yaml.safe_load(text)
    row["users"][0]["user"] = {"token": token}
    return json.dumps(row)


@pytest.mark.parametrize("claim", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_an_mpi_job_whose_program_fails_is_over(kubernetes_cluster: KubernetesLab, tmp_path: Path, claim: bool) -> None:
    """The object says that it is over; the record says how."""
    site = KubernetesSite(kubernetes_cluster, tmp_path, claim)
    try:
        run = site.start("--steps 6 --fail-at 2", nodes=2, launcher="mpi")
        assert run.wait(END_S).state == "failed"
        until(lambda: _is_done(site, run.id), "the MPIJob is over")
        until(lambda: run.record() and run.folder.is_sealed, "the record is sealed")
    finally:
        site.close()


def _is_done(site: KubernetesSite, run_id: str) -> bool:
    """Whether it has succeeded, or whoever looked has cleared it away."""
    done = site.lab.kubectl("get", "mpijob", run_id, "--namespace=lab", "--output=json")
    if done.returncode:
        return "NotFound" in done.stderr
    conditions: list[dict[str, Any]] = json.loads(done.stdout).get("status", {}).get("conditions", [])
    return any((row["type"], row["status"]) == ("Succeeded", "True") for row in conditions)


def test_runs_that_are_cancelled_together_all_say_so(site: KubernetesSite, tmp_path: Path) -> None:
    runs = [site.start("--steps 6 --hold-at 3", resources=SMALL) for _ in range(4)]
    for run in runs:
        site.wait_step(run, 3)
    says(Client(tmp_path), f"cancel --yes {' '.join(run.id for run in runs)}", 0)
    assert [run.wait(END_S).state for run in runs] == ["cancelled"] * 4
    until(lambda: not any(pods(site.lab, run.id) for run in runs), "none of their Kubernetes pods is left")


def held_for(site: KubernetesSite, run: Run) -> str:
    """Why we keep a run suspended, as its object says."""
    job = site.lab.kubectl("get", "job", run.id, "--namespace=lab", "--output=json").stdout
    annotations = json.loads(job)["metadata"].get("annotations", {})
    return str(annotations.get("podwright.dev/held", ""))


@pytest.mark.slow
def test_a_run_that_gets_some_of_its_nodes_gives_them_to_one_that_fits(
    kubernetes_cluster: KubernetesLab, tmp_path: Path
) -> None:
    """One of two nodes is taken. The second run gets the other, and the third, which needs no more, waits for it."""
    site = KubernetesSite(kubernetes_cluster, tmp_path)
    site.session = kubernetes_session(site.home, patience=Patience(short_s=2.0, again_s=2.0))
    fields = {"resources": "{gpus: 5, memory: 256MiB}", "ranks_per_node": 1}
    try:
        first = site.start("--steps 6 --hold-at 3", **fields)
        site.wait_step(first, 3)
        second = site.start("--steps 2", nodes=2, **fields)
        until(lambda: second.record() and held_for(site, second) == "together", "the second run gives its node back")
        assert "gave its nodes back, as not all of them were free" in second.record().reason
        third = site.start("--steps 2", **fields)
        until(lambda: second.record() and third.record().state == "succeeded", "the third run has its node")
        first.cancel()
        record = second.wait(END_S)
        assert (record.state, record.attempts) == ("succeeded", 1), second.explain()
    finally:
        site.close()


@pytest.mark.slow
def test_points_beyond_the_bound_wait_for_those_before_them(site: KubernetesSite) -> None:
    fields = {"matrix": "{seed: [1, 2, 3]}", "kubernetes": "{parallel: 1}", "resources": SMALL}
    run = site.start("--steps 2", **fields)
    assert [held_for(site, point) for point in run.points()][1:] == ["parallel", "parallel"]
    assert run.wait(END_S).state == "succeeded"
    times = [(point.record().started_at or 0.0, point.record().ended_at or 0.0) for point in run.points()]
    for (_, ended), (started, _) in pairwise(times):
        assert ended <= started
