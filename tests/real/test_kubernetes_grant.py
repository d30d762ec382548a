"""Runs with RDMA under the granted Role alone, in namespaces whose Pod Security forbids IPC_LOCK and lets it be."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podwright.lab.kubernetes import KubernetesLab
from tests.paths import ROOT
from tests.real.clients import BIN, Client, kubectl, pod_of
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

IPC_LOCK = 14
"""The number of the capability in the kernel's sets."""
LOOK = f"""
import re
bounds = re.search("CapBnd:\\t(.*)", open("/proc/self/status").read())[1]
print("may lock memory" if int(bounds, 16) >> {IPC_LOCK} & 1 else "may not lock memory")
"""
LOCKING = {"name": "c", "image": "registry.example/c:1", "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "locking"}, "spec": {"containers": [LOCKING]}}
Granting = Callable[..., Client]


@pytest.fixture
def granting(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[Granting]:
    """Gives a client whose pod's runs go to a namespace that an administrator granted, with these options."""
    lab, spaces = kubernetes_cluster, []

    def grant(namespace: str, *options: str) -> Client:
        spaces.append(namespace)
        admin = {"kubeconfig": str(lab.admin_kubeconfig), "context": f"{lab.name}-admin"}
        files = [
            pod_of(lab, tmp_path, "admin", namespace=namespace, claim=None, **admin),
            pod_of(lab, tmp_path, "user", namespace=namespace, claim=None),
        ]
        client = Client(tmp_path, *files)
        client.ask("pod", "grant", "admin", "--namespace", namespace, "--group", "lab-users", "--yes", *options)
        return client

    yield grant
    for namespace in spaces:
        lab.kubectl("delete", "namespace", namespace, "--wait=false", admin=True)


def run(client: Client, folder: Path) -> tuple[str, str]:
    """What `podwright run` said, and what the run's rank printed."""
    fields = {"name": "locks", "command": ["python3", "-c", LOOK], "resources": {"gpus": 1, "rdma": True}}
    file = folder / "work" / "locks.yaml"
    file.parent.mkdir()
    file.write_text(json.dumps(fields))
    command = [str(BIN / "podwright"), "run", str(file), "--on", "user", "--json"]
    done = subprocess.run(command, env=client.environ, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr, client.ask("logs", json.loads(done.stdout)["id"]).strip()


def is_let(lab: KubernetesLab, namespace: str) -> bool:
    """Whether the API server's Pod Security lets a container lock memory there."""
    words = ["create", "--filename=-", f"--namespace={namespace}", "--dry-run=server"]
    done = lab.kubectl(*words, admin=True, give=json.dumps(POD))
    assert done.returncode == 0 or "violates PodSecurity" in done.stderr
    return done.returncode == 0


def test_without_ipc_lock_a_run_goes_on_and_says_so(
    granting: Granting, kubernetes_cluster: KubernetesLab, tmp_path: Path
) -> None:
    client = granting("strict")
    assert not is_let(kubernetes_cluster, "strict")
    said, printed = run(client, tmp_path)
    assert "the Pod Security of the namespace strict forbids IPC_LOCK" in said
    assert "`podwright pod grant user --namespace strict --rdma` gives it" in said
    assert printed == "may not lock memory"


def test_a_namespace_granted_with_rdma_gives_it(
    granting: Granting, kubernetes_cluster: KubernetesLab, tmp_path: Path
) -> None:
    client = granting("fabric", "--rdma")
    assert is_let(kubernetes_cluster, "fabric")
    said, printed = run(client, tmp_path)
    assert "IPC_LOCK" not in said
    assert printed == "may lock memory"
    labels = kubectl(kubernetes_cluster, "get", "namespace", "fabric", admin=True)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
