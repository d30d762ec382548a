"""Large runs on 140 virtual DGX nodes: the real scheduler places them as the design of the pod wants."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright.design import Design
from podwright.design.exports.schedulers import scheduler_files
from podwright.lab.kubernetes import KubernetesLab
from podwright.lab.kubernetes.configs import PLAYED_FOR
from podwright.spec import load_pod
from tests.real.clients import Client, kubectl, pods, until
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

POD = """\
name: superpod
nodes:
  - {hosts: "dgx[001-140]", model: dgx-1}
fabrics:
  compute: {scalable_unit: 20}
"""
NVL72 = """\
name: superpod
nodes:
  - {hosts: "dgx[001-140]", model: dgx-gb200}
"""
DOMAIN = "podwright.dev/nvlink-domain"
DOMAIN_NODES = 18
PLAYED = {
    "metadata": {"annotations": {PLAYED_FOR: "30m"}},
    "spec": {"nodeSelector": {"type": "kwok"}, "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}]},
}
"""Virtual nodes only, and long enough that a test ends it."""
UNIT_NODES = 20


class Superpod:
    """140 nodes of eight GPUs and four rails each, in units of twenty."""

    def __init__(self, lab: KubernetesLab, folder: Path, pod: str = POD) -> None:
        self.lab, self.folder = lab, folder
        scheduler = lab.pod_file.read_text().partition("schedulers:\n")[2]
        (folder / "superpod.yaml").write_text(f"{pod}schedulers:\n{scheduler}")
        self.client = Client(folder, folder / "superpod.yaml")
        self.run_id = ""

    def start(self, **fields: Any) -> None:
        """Starts a workload that takes whole nodes."""
        fields = {"name": "large", "command": "python3 train.py", "kubernetes": {"patch": PLAYED}, **fields}
        file = self.folder / "work" / "large.yaml"
        file.parent.mkdir()
        file.write_text(json.dumps(fields))
        self.run_id = self.client.start(file, "superpod")

    def placed(self, count: int) -> list[dict[str, Any]]:
        """Gives the Kubernetes pods of the run's nodes, once all of them run."""

        def running() -> list[dict[str, Any]]:
            nodes = [pod for pod in pods(self.lab, self.run_id) if "-launcher" not in pod["metadata"]["name"]]
            found = [pod for pod in nodes if pod["status"]["phase"] == "Running"]
            return found if len(found) == count else []

        found: list[dict[str, Any]] = until(running, f"{count} nodes run")
        return found

    def units(self, placed: list[dict[str, Any]]) -> tuple[Counter[str], set[str]]:
        """Gives the units of a run with how many of its nodes are in each, and those in which there was room for more.

        A node that was not ready for a moment, on a machine that is busy, could not be chosen.
        """
        began = min(pod["metadata"]["creationTimestamp"] for pod in placed)
        nodes = kubectl(self.lab, "get", "nodes", "--selector=type=kwok")["items"]
        unit = {node["metadata"]["name"]: node["metadata"]["labels"]["podwright.dev/unit"] for node in nodes}
        taken = {pod["spec"]["nodeName"] for pod in placed}
        left = {node["metadata"]["name"] for node in nodes if ready_since(node) < began} - taken
        counts = Counter(unit[name] for name in taken)
        return counts, {unit[name] for name in left} & set(counts)


def ready_since(node: dict[str, Any]) -> str:
    """Gives the time since when a node is ready without a break; the end of all times where it is not."""
    (ready,) = (one for one in node["status"]["conditions"] if one["type"] == "Ready")
    return str(ready["lastTransitionTime"]) if ready["status"] == "True" else "9999"


@pytest.fixture
def superpod(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[Superpod]:
    made = Superpod(kubernetes_cluster, tmp_path)
    yield made
    kubernetes_cluster.kubectl("delete", "jobs,mpijobs", made.run_id, "--namespace=lab", "--ignore-not-found")


def test_sixteen_workers_with_four_rails_each_stay_in_one_unit(superpod: Superpod) -> None:
    superpod.start(nodes=16, launcher="mpi", resources={"gpus": 8, "rdma": True})
    placed = superpod.placed(16)
    devices = {"nvidia.com/gpu": "8", **{f"rdma/shared_ib{rail}": "1" for rail in range(4)}}
    for pod in placed:
        assert pod["spec"]["containers"][0]["resources"]["limits"] == devices
    assert len({pod["spec"]["nodeName"] for pod in placed}) == 16
    counts, _ = superpod.units(placed)
    assert list(counts.values()) == [16]
    until(lambda: len(pods(superpod.lab, superpod.run_id)) == 17, "the operator made the launcher")


def test_a_hundred_nodes_fill_whole_units(superpod: Superpod) -> None:
    superpod.start(nodes=100, launcher="torchrun", resources={"gpus": 8})
    placed = superpod.placed(100)
    counts, roomy = superpod.units(placed)
    assert sum(counts.values()) == 100
    assert max(counts.values()) == UNIT_NODES
    assert len(roomy) <= 1, f"a unit is begun when the one before is full: {counts}"


@pytest.fixture
def trays(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[Superpod]:
    """The same nodes as trays of NVL72 racks, labelled with the domains of their design and by no discovery."""
    design = Design.of(load_pod(pod_file(tmp_path, NVL72)))
    domains: dict[str, list[str]] = defaultdict(list)
    for node in yaml.safe_load_all(scheduler_files(design)["kubernetes/node-labels.yaml"]):
        domains[node["metadata"]["labels"][DOMAIN]].append(node["metadata"]["name"])
    for domain, hosts in domains.items():
        done = kubernetes_cluster.kubectl("label", "nodes", *hosts, f"{DOMAIN}={domain}", admin=True)
        assert done.returncode == 0, done.stderr
    made = Superpod(kubernetes_cluster, tmp_path, NVL72)
    yield made
    kubernetes_cluster.kubectl("delete", "jobs", made.run_id, "--namespace=lab", "--ignore-not-found")
    kubernetes_cluster.kubectl("label", "nodes", "--selector=type=kwok", f"{DOMAIN}-", admin=True)


def pod_file(folder: Path, text: str) -> Path:
    (folder / "designed.yaml").write_text(text)
    return folder / "designed.yaml"


def test_eighteen_trays_stay_in_one_nvlink_domain(trays: Superpod) -> None:
    trays.start(nodes=DOMAIN_NODES, launcher="torchrun", resources={"gpus": 4})
    taken = {pod["spec"]["nodeName"] for pod in trays.placed(DOMAIN_NODES)}
    nodes = kubectl(trays.lab, "get", "nodes", "--selector=type=kwok")["items"]
    domains = {node["metadata"]["name"]: node["metadata"]["labels"][DOMAIN] for node in nodes}
    assert Counter(domains[name] for name in taken) == {domains[min(taken)]: DOMAIN_NODES}
