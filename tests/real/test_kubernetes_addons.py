"""Add-ons as a pod's bring-up gives them, on a real Kubernetes, and a run that needs them; nodes drained by kubectl."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.bringup.apply import cluster_keys
from podwright.bringup.apply.changes import ChangeId
from podwright.bringup.apply.rolling import KubernetesDrain
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.kubernetes import addons, kubeadm
from podwright.bringup.plan.site import site_of
from podwright.lab import processes
from podwright.lab.kubernetes import KubernetesLab, binaries, image, registry
from podwright.lab.kubernetes.shape import CONTROL
from podwright.spec import load_pod
from tests.paths import CASES
from tests.real.clients import Client, kubectl, pods, until
from tests.real.labs import ON_KUBERNETES, aloud, kubernetes_lab

pytestmark = [*ON_KUBERNETES, pytest.mark.slow, pytest.mark.nightly]


def image_in(name: str) -> str:
    """The image that a manifest names."""
    (deployment,) = [item for item in addons.manifest(name) if item["kind"] == "Deployment"]
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


IMAGES = {name: image_in(name) for name in ("mpi-operator", "jobset")}
"""The lab's programs, each in an image that has nothing else, under the name that the pod's objects have of it."""
DEPLOYMENTS = {"mpi-operator": "mpi-operator", "jobset-controller-manager": "jobset-system"}
HOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


GROUP = "system:bootstrappers:kubeadm:default-node-token"
LEASE = "6d4f6a47.jobset.x-k8s.io"
SET = """\
name: set
nodes: 2
resources: {cpus: 1}
command: [python, -c, "print('here')"]
kubernetes: {kind: jobset}
"""
TIMEOUT = "--timeout=400s"
_OPERATORS = ("mpioperator/mpi-operator", "registry.k8s.io/jobset/jobset")


class Host:
    """The first management host of a pod, of which the lab's own machine plays what applies add-ons."""

    def __init__(self, lab: KubernetesLab, folder: Path) -> None:
        text = (CASES / "bringup" / "kubeadm" / "pod.yaml").read_text()
        file = folder / "pod.yaml"
        file.write_text(text.replace("nics: [{kind: compute, speed: 200Gb/s}]", "nics: []"))
        site = site_of(load_pod(file))
        step = plan(site.pod)["m1"].steps["kubernetes.addons"]
        (self.command,) = step.commands
        self.places = {
            "/etc/kubernetes/admin.conf": str(lab.admin_kubeconfig),
            "/etc/kubernetes/podwright": str(folder),
            **{name: f"{lab.image.partition('/')[0]}/{name.rpartition('/')[2]}" for name in _OPERATORS},
        }
        self.environ = environ_of(lab)
        for given in step.files:
            path = Path(self.here(given.path))
            path.parent.mkdir(exist_ok=True)
            path.write_text(self.here(given.text))

    def here(self, text: str) -> str:
        """Gives a text of that host with the lab's places."""
        for there, here in self.places.items():
            text = text.replace(there, here)
        return text

    def run(self, command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        words = [self.here(word) for word in command]
        return subprocess.run(words, env=self.environ, capture_output=True, text=True, check=False)

    def is_as_wanted(self) -> bool:
        """Gives what the next `up` would see."""
        return self.command.sees in self.run(self.command.check).stdout


@pytest.fixture(scope="module")
def lab(pytestconfig: pytest.Config) -> Iterator[KubernetesLab]:
    """A cluster of its own: it loses the operators that every lab has, and their kinds."""
    with kubernetes_lab(nodes=2, say=aloud(pytestconfig)) as lab:
        for name in ("keep-mpi", *IMAGES):
            for pid in lab.machines.running(CONTROL)[name]:
                processes.kill(pid)
        for kind in HOOKS:
            assert lab.kubectl("delete", kind, "jobset", admin=True).returncode == 0
        kinds = ("delete", "crd", "jobsets.jobset.x-k8s.io", "mpijobs.kubeflow.org")
        assert lab.kubectl(*kinds, admin=True).returncode == 0
        yield lab


@pytest.fixture(scope="module")
def host(lab: KubernetesLab, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The cluster has what a pod with the lab's registry would be given."""
    programs = binaries.get(lambda word, text: None, lambda done, total: None)
    for name, called in IMAGES.items():
        registry.put(lab.ports.registry, called, image.lone(name, programs[name], "65532"))
    host = Host(lab, tmp_path_factory.mktemp("host"))
    assert not host.is_as_wanted()
    done = host.run(host.command.run)
    assert done.returncode == 0, done.stderr
    for name, place in DEPLOYMENTS.items():
        rolled = lab.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={place}", TIMEOUT, admin=True)
        assert rolled.returncode == 0, rolled.stdout + rolled.stderr
    return host


def environ_of(lab: KubernetesLab) -> dict[str, str]:
    """What a management host's shell has: the administrator's way in, and kubectl."""
    path = f"{lab.kubectl_path.parent}:/usr/bin:/bin"
    return {**os.environ, "KUBECONFIG": str(lab.admin_kubeconfig), "PATH": path}


def holder(lab: KubernetesLab, lease: str, place: str) -> str:
    """Gives who leads: a container of the cluster, not the lab's program."""
    return str(kubectl(lab, "get", "lease", lease, f"--namespace={place}", admin=True)["spec"]["holderIdentity"])


def test_a_second_up_finds_the_add_ons_as_they_should_be(lab: KubernetesLab, host: Host) -> None:
    """Though JobSet has written its certificate into what the API server asks it by."""
    (hook, _) = kubectl(lab, "get", HOOKS[0], "jobset-mutating-webhook-configuration", admin=True)["webhooks"]
    assert hook["clientConfig"]["caBundle"]
    assert host.is_as_wanted()
    scaled = lab.kubectl("scale", "deployment/mpi-operator", "--namespace=mpi-operator", "--replicas=2", admin=True)
    assert scaled.returncode == 0, scaled.stderr
    assert not host.is_as_wanted(), "what somebody changed by hand is seen"
    assert host.run(host.command.run).returncode == 0
    assert host.is_as_wanted()


def test_a_run_over_two_nodes_uses_the_mpi_operator_of_our_manifests(
    lab: KubernetesLab, host: Host, tmp_path: Path
) -> None:
    """Without it nobody would make the run's workers: the lab's own operator is gone."""
    assert "mpi-operator" not in lab.machines.running(CONTROL)
    client = Client(tmp_path, lab.pod_file)
    run = client.run("examples/allreduce.yaml", lab.name, "--set", "resources.cpus=1")
    assert (run["state"], run["world_size"], run["results"]["world"]) == ("succeeded", 4, 4)
    assert holder(lab, "mpi-operator", "mpi-operator").startswith("mpi-operator")


def test_a_run_over_two_nodes_uses_the_jobset_of_our_manifests(lab: KubernetesLab, host: Host, tmp_path: Path) -> None:
    """Without it nobody would make the set's job, nor answer the API server: the lab's own controller is gone."""
    assert "jobset" not in lab.machines.running(CONTROL)
    client = Client(tmp_path, lab.pod_file)
    file = tmp_path / "work" / "set.yaml"
    file.parent.mkdir()
    file.write_text(SET)
    run = client.start(file, lab.name)
    ended = client.wait(run)
    assert (ended["state"], ended["nodes"]) == ("succeeded", 2)
    assert {pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] for pod in pods(lab, run)} == {run}
    assert holder(lab, LEASE, "jobset-system").startswith("jobset-controller-manager")


def test_the_jobset_of_our_manifests_refuses_what_makes_no_sense(lab: KubernetesLab, host: Host) -> None:
    """The API server reaches it by the service that our objects name."""
    inner = {"containers": [{"name": "a", "image": lab.image}], "restartPolicy": "Never"}
    wrong = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "wrong", "namespace": "lab"},
        "spec": {
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["none"]},
            "replicatedJobs": [{"name": "a", "template": {"spec": {"template": {"spec": inner}}}}],
        },
    }
    done = lab.kubectl("create", "--filename=-", give=json.dumps(wrong))
    assert done.returncode != 0
    assert "invalid replicatedJob name 'none' does not appear" in done.stderr


def test_the_api_server_knows_who_joins(lab: KubernetesLab, tmp_path: Path) -> None:
    """By a certificate that the cluster's authority signed, here the lab's: one of those that kubeadm lets join."""
    site = site_of(load_pod(CASES / "bringup" / "kubeadm" / "pod.yaml"))
    pki = lab.folder / "pki"
    known = {"kubernetes_ca_key": pki / "ca.key", "kubernetes_ca_certificate": pki / "ca.crt"}
    given = cluster_keys.new_discovery(site, {name: path.read_text() for name, path in known.items()})
    file = tmp_path / "discovery.conf"
    there = f"https://{kubeadm.endpoint(site)}"
    file.write_text(given["kubernetes_discovery"].replace(there, f"https://127.0.0.1:{lab.ports.api}"))
    command = [lab.kubectl_path, f"--kubeconfig={file}", "auth", "whoami", "--output=json"]
    asked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert asked.returncode == 0, asked.stderr
    who = json.loads(asked.stdout)["status"]["userInfo"]
    assert (who["username"], who["groups"][0]) == ("system:bootstrap:podwright", GROUP)


def test_a_node_is_drained_when_its_run_has_ended_and_is_taken_back(lab: KubernetesLab, tmp_path: Path) -> None:
    """kubectl as a rolling change gives it on a management host, here with the lab's own way in."""
    environ = environ_of(lab)
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
        if line.startswith("kubectl get pods") and sum(each.startswith("kubectl get pods") for each in lines) == 2:
            client.ask("cancel", run)
            gate.touch()
        done = subprocess.run(["sh", "-c", line], env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        return done.stdout

    drain = KubernetesDrain(shell, ChangeId("c1"), patience_s=300, every_s=0.5)
    drain.drain([node])
    assert gate.exists(), "the run was waited for"
    assert kubectl(lab, "get", "node", node, admin=True)["spec"]["unschedulable"]
    assert drain.resume([node]) == []
    assert "unschedulable" not in kubectl(lab, "get", "node", node, admin=True)["spec"]
    # What a person has closed stays closed, before the change and after it.
    shell(f"kubectl cordon {node}")
    drain.drain([node])
    assert drain.resume([node]) == [node]
    assert kubectl(lab, "get", "node", node, admin=True)["spec"]["unschedulable"]
    shell(f"kubectl uncordon {node}")
