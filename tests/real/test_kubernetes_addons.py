"""Add-ons as a pod's bring-up gives them, on a real Kubernetes, and a run that needs them; nodes drained by kubectl."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.bringup.kubernetes import addons
from podwright.bringup.rolling import KubernetesDrain
from podwright.bringup.site import site_of
from podwright.clients.kubernetes.manifest import yaml_text
from podwright.lab import processes
from podwright.lab.kubernetes import KubernetesLab, binaries, image, registry
from podwright.lab.kubernetes.shape import CONTROL
from podwright.spec import load_pod
from tests.paths import CASES
from tests.real.clients import Client, kubectl, pods, until
from tests.real.labs import ON_KUBERNETES, aloud, kubernetes_lab

pytestmark = [*ON_KUBERNETES, pytest.mark.slow, pytest.mark.nightly]
OPERATOR = "mpi-operator"


@pytest.fixture(scope="module")
def lab(pytestconfig: pytest.Config) -> Iterator[KubernetesLab]:
    """A cluster of its own: it loses the operator that every lab has."""
    with kubernetes_lab(nodes=2, say=aloud(pytestconfig)) as lab:
        for name in ("keep-mpi", OPERATOR):
            for pid in lab.machines.running(CONTROL)[name]:
                processes.kill(pid)
        yield lab


def give_operator(lab: KubernetesLab) -> None:
    """Puts the operator's image into the cluster's registry, and applies it as a pod with that registry would."""
    place = lab.image.partition("/")[0]
    program = binaries.get(lambda word, text: None, lambda done, total: None)[OPERATOR]
    registry.put(lab.ports.registry, f"{OPERATOR}/{OPERATOR}:0.8.0", image.lone(OPERATOR, program, "65532"))
    site = site_of(load_pod(CASES / "bringup" / "kubeadm" / "pod.yaml"))
    text = yaml_text(addons.mpi_operator(site)).replace(f"{site.registry}/", f"{place}/")
    done = lab.kubectl("apply", "--server-side", "--filename=-", admin=True, give=text)
    assert done.returncode == 0, done.stderr


def test_a_run_over_two_nodes_uses_the_mpi_operator_of_our_manifests(lab: KubernetesLab, tmp_path: Path) -> None:
    """Without it nobody would make the run's workers: the lab's own operator is gone."""
    assert OPERATOR not in lab.machines.running(CONTROL)
    give_operator(lab)
    words = ("rollout", "status", f"deployment/{OPERATOR}", f"--namespace={OPERATOR}", "--timeout=300s")
    rolled = lab.kubectl(*words, admin=True)
    assert rolled.returncode == 0, rolled.stdout + rolled.stderr
    client = Client(tmp_path, lab.pod_file)
    run = client.run("examples/allreduce.yaml", lab.name, "--set", "resources.cpus=1")
    assert (run["state"], run["world_size"], run["results"]["world"]) == ("succeeded", 4, 4)
    leader = kubectl(lab, "get", "lease", "mpi-operator", f"--namespace={OPERATOR}", admin=True)
    assert leader["spec"]["holderIdentity"].startswith(OPERATOR), "a container of the cluster, not the lab's program"


def test_a_node_is_drained_when_its_run_has_ended_and_is_taken_back(lab: KubernetesLab, tmp_path: Path) -> None:
    """kubectl as a rolling change gives it on a management host, here with the lab's own way in."""
    environ = {
        **os.environ,
        "KUBECONFIG": str(lab.admin_kubeconfig),
        "PATH": f"{lab.kubectl_path.parent}:/usr/bin:/bin",
    }
    lines: list[str] = []
    gate = tmp_path / "gate"
    client = Client(tmp_path, lab.pod_file)
    file = tmp_path / "work" / "waits.yaml"
    file.parent.mkdir()
    file.write_text("name: waits\nresources: {cpus: 1}\ncommand: [sleep, infinity]\n")
    run = client.start(file, lab.name)
    until(lambda: [pod for pod in pods(lab, run) if pod["status"]["phase"] == "Running"], "the run is there")
    (node,) = {pod["spec"]["nodeName"] for pod in pods(lab, run)}

    def shell(line: str) -> str:
        lines.append(line)
        # The second look finds the run still there; then it is ended.
        if line.startswith("kubectl get") and sum(each.startswith("kubectl get") for each in lines) == 2:
            client.ask("cancel", run)
            gate.touch()
        done = subprocess.run(["sh", "-c", line], env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        return done.stdout

    drain = KubernetesDrain(shell, patience_s=300, every_s=0.5)
    drain.drain([node])
    assert gate.exists(), "the run was waited for"
    assert kubectl(lab, "get", "node", node, admin=True)["spec"]["unschedulable"]
    drain.resume([node])
    assert "unschedulable" not in kubectl(lab, "get", "node", node, admin=True)["spec"]
