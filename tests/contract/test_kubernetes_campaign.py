"""By night: nodes of a real Kubernetes lose their power, its API server dies as it gives nodes away, and runs end once.

Seeded by the wave's number. Ten runs at once share four nodes, so that two or three of these strike nearly all. What
is left afterwards is looked for: a Job, a Kubernetes pod, a claim beside the lab's. A wave alone is
`test_every_run_ends_once[kubernetes-3]`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.kubernetes import KubernetesLab
from podwright.launch import Run
from tests.contract.campaign import CYCLES_S, VICTIMS, Struck, finish
from tests.contract.sites import END_S, KubernetesSite, until
from tests.real.labs import ON_KUBERNETES, kubernetes_lab

pytestmark = [*ON_KUBERNETES, pytest.mark.nightly, pytest.mark.timeout(1800)]
PLACE = "kubernetes"
NODES, RUNS, WAVES = 4, 10, 12
LIGHT = "{patch: {spec: {containers: [{name: pilot, resources: {requests: {cpu: 10m, memory: 64Mi}}}]}}}"
"""Ranks that wait most of the time need no core of their own, of which the lab's nodes have as few as this machine."""
FIELDS = {"nodes": 2, "grace": "2s", "resources": "{cpus: 1, memory: 256MiB}", "kubernetes": LIGHT}


@pytest.fixture(scope="module")
def lab() -> Iterator[KubernetesLab]:
    with kubernetes_lab(nodes=NODES, virtual_nodes=0, grace_s=30) as lab:
        yield lab


@pytest.fixture
def site(lab: KubernetesLab, tmp_path: Path) -> Iterator[KubernetesSite]:
    site = KubernetesSite(lab, tmp_path)
    yield site
    site.close()


def lose_power(site: KubernetesSite, chance: random.Random) -> list[Struck]:
    """Two nodes or three, with parts of most runs, which lose a leader, a member or both by it."""
    runs = [site.start("--steps 240 --pause 0.25 --ledger", **FIELDS) for _ in range(RUNS)]
    for run in runs:
        site.wait_step(run, chance.randint(1, 4), rank=1)
    hosts = {run.id: run.record().hosts for run in runs}
    away_s = chance.choice(CYCLES_S)
    victims = chance.sample(site.lab.shape.hosts(), chance.choice([2, 3]))
    for victim in victims:
        site.lab.kill_node(victim)
    time.sleep(away_s)
    mended = time.time()  # their own start is part of what runs wait for
    site.lab.heal()
    return [Struck(run, words_of(hosts[run.id], victims, away_s), mended) for run in runs]


def words_of(hosts: list[str], victims: list[str], away_s: float) -> str:
    """What a run of these hosts lost when these were without power."""
    lost = [role for role, host in zip(VICTIMS, hosts, strict=True) if host in victims]
    if lost:
        return f"{' and '.join(lost)} {away_s:g} s"
    return "beside it"


def lose_server(site: KubernetesSite, chance: random.Random) -> list[Struck]:
    """The API server dies as runs are given their nodes, and again half a minute later."""
    runs = [site.start("--steps 120 --pause 0.25 --ledger", **FIELDS) for _ in range(RUNS)]
    until(lambda: any(run.record().state != "pending" for run in runs), "one of them starts")
    site.lab.kill_controller()
    time.sleep(chance.uniform(25.0, 35.0))
    site.lab.kill_controller()
    return [Struck(run, "server twice", time.time()) for run in runs]


FAULTS = (lose_power, lose_server)


def left_over(site: KubernetesSite, runs: list[Run]) -> list[str]:
    """What the cluster has of these runs that is not over, and claims that nobody made by hand."""
    selector = f"--selector=podwright.dev/run in ({','.join(run.id for run in runs)})"
    words = ["get", "pods", "--namespace=lab", selector, "--output=name"]
    alive = site.lab.kubectl(*words, "--field-selector=status.phase!=Succeeded,status.phase!=Failed").stdout.split()
    claims = site.lab.kubectl("get", "pvc", "--namespace=lab", "--output=name").stdout.split()
    jobs = site.lab.kubectl("get", "jobs", "--namespace=lab", selector, "--output=jsonpath={.items[*].status.active}")
    return [*alive, *claims[1:], *(f"{count} active" for count in jobs.stdout.split())]


@pytest.mark.parametrize("wave", [f"{PLACE}-{number}" for number in range(WAVES)])
def test_every_run_ends_once(site: KubernetesSite, wave: str, tmp_path: Path) -> None:
    ready = dict.fromkeys(site.lab.node_states(), "Ready")
    until(lambda: site.lab.heal() is not None and site.lab.node_states() == ready, "all nodes are ready")
    number = int(wave.rpartition("-")[2])
    struck = FAULTS[number % len(FAULTS)](site, random.Random(wave))
    runs = [row.run for row in struck]
    finish(PLACE, site, struck, lambda run: run.pull(["ledger"], tmp_path / "pulled" / run.id)[0], requeue_s=0.0)
    until(lambda: not left_over(site, runs), "nothing of them is left", END_S)
