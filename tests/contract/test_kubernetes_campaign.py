"""By night: nodes of a real Kubernetes lose their power, its API server dies as it gives nodes away, and runs end once.

Seeded by the wave's number. What is left afterwards is looked for: a Job, a Kubernetes pod, a claim beside the lab's.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.kubernetes import KubernetesLab
from podwright.launch import Run
from tests.contract.campaign import (
    CYCLES_S,
    VICTIMS,
    Struck,
    check_ended_once,
    finish,
    ledger_rows,
)
from tests.contract.sites import END_S, KubernetesSite, until
from tests.real.labs import ON_KUBERNETES, kubernetes_lab

pytestmark = [*ON_KUBERNETES, pytest.mark.nightly, pytest.mark.timeout(1800)]
PLACE = "kubernetes"
NODES, RUNS, WAVES = 4, 4, 25
FIELDS = {"nodes": 2, "grace": "2s", "resources": "{cpus: 1, memory: 256MiB}"}


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
    """A node with parts of several runs, which lose a leader or a member by it."""
    runs = [site.start("--steps 160 --pause 0.25 --ledger", **FIELDS) for _ in range(RUNS)]
    for run in runs:
        site.wait_step(run, chance.randint(1, 4), rank=1)
    host, away_s = chance.choice(runs[0].record().hosts), chance.choice(CYCLES_S)
    hit = {run.id: run.record().hosts for run in runs if host in run.record().hosts}
    site.lab.kill_node(host)
    time.sleep(away_s)
    site.lab.heal(host)
    mended = time.time()
    faults = {run_id: f"{VICTIMS[hosts.index(host)]} {away_s:g} s" for run_id, hosts in hit.items()}
    return [Struck(run, faults.get(run.id, "beside it"), mended) for run in runs]


def lose_server(site: KubernetesSite, chance: random.Random) -> list[Struck]:
    """The API server dies as runs are given their nodes, and again half a minute later."""
    runs = [site.start("--steps 80 --pause 0.25 --ledger", **FIELDS) for _ in range(RUNS)]
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


@pytest.mark.parametrize("wave", range(WAVES))
def test_every_run_ends_once(site: KubernetesSite, wave: int, tmp_path: Path) -> None:
    ready = dict.fromkeys(site.lab.node_states(), "Ready")
    until(lambda: site.lab.heal() is not None and site.lab.node_states() == ready, "all nodes are ready")
    struck = FAULTS[wave % len(FAULTS)](site, random.Random(f"{PLACE} {wave}"))
    runs = [row.run for row in struck]
    finish(PLACE, site, struck)
    for run in runs:
        (path,) = run.pull(["ledger"], tmp_path / "pulled")
        check_ended_once(ledger_rows(path), 2)
    until(lambda: not left_over(site, runs), "nothing of them is left", END_S)
