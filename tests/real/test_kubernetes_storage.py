"""A namespace is given the pod's storage on a real Kubernetes, and a run reads and writes there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.kubernetes import KubernetesLab
from podwright.spec import load_pod
from tests.real.clients import Client, kubectl, pod_of, until
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

NAMESPACE = "perception"
STORAGE = """\
storage:
  - {name: records, kind: ceph, capacity: 1GiB, storage_class: lab}
  - {name: frames, kind: ceph, capacity: 1GiB, storage_class: lab, mount: /frames}
  - {name: home, kind: nfs, capacity: 1GiB, server: "nfs1:/export/home", mount: /home/all}
"""
READ = """
import os, pathlib, sys
print(pathlib.Path(sys.argv[1], "frame").read_text())
pathlib.Path(os.environ["PODWRIGHT_CHECKPOINT"], "weights").write_text("w")
"""


@pytest.fixture(scope="module")
def granted(kubernetes_cluster: KubernetesLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client whose pod has storage, in a namespace that an administrator was asked for by one command."""
    lab, config = kubernetes_cluster, str(kubernetes_cluster.admin_kubeconfig)
    folder = tmp_path_factory.mktemp("granted")
    place = {"namespace": NAMESPACE, "claim": "records"}
    admin = pod_of(lab, folder, "admin", **place, kubeconfig=config, context=f"{lab.name}-admin")
    user = pod_of(lab, folder, "user", **place)
    for file in (admin, user):
        file.write_text(file.read_text() + STORAGE)
    client = Client(folder, admin, user)
    client.ask("pod", "grant", "admin", "--namespace", NAMESPACE, "--group", "lab-users", "--yes")
    yield client
    kubectl_delete(lab, "namespace", NAMESPACE)
    kubectl_delete(lab, "pv", f"admin-home-{NAMESPACE}")


def kubectl_delete(lab: KubernetesLab, *words: str) -> None:
    done = lab.kubectl("delete", *words, "--ignore-not-found", "--wait=false", admin=True)
    assert done.returncode == 0, done.stderr


def claims(lab: KubernetesLab) -> dict[str, str]:
    """Gives the claims of the namespace with their phases."""
    items = kubectl(lab, "get", "pvc", f"--namespace={NAMESPACE}", admin=True)["items"]
    return {item["metadata"]["name"]: item["status"].get("phase", "") for item in items}


def volume_of(lab: KubernetesLab, claim: str) -> str:
    return str(kubectl(lab, "get", "pvc", claim, f"--namespace={NAMESPACE}", admin=True)["spec"]["volumeName"])


def test_claims_are_bound_and_a_run_uses_them(
    granted: Client, kubernetes_cluster: KubernetesLab, tmp_path: Path
) -> None:
    """Two are met by the storage class, one by a volume that the pod's own server stands for."""
    bound = dict.fromkeys(("records", "frames", "home"), "Bound")
    until(lambda: claims(kubernetes_cluster) == bound, "all claims are bound")
    assert volume_of(kubernetes_cluster, "home") == f"admin-home-{NAMESPACE}"
    frames = kubernetes_cluster.folder / "volumes" / volume_of(kubernetes_cluster, "frames") / "small"
    frames.mkdir()
    (frames / "frame").write_text("a frame on a claim")
    fields = {"name": "read", "command": ["python3", "-c", READ, "{data.frames}"], "data": {"frames": "/frames/small"}}
    file = tmp_path / "work" / "read.yaml"
    file.parent.mkdir()
    file.write_text(json.dumps(fields))
    run = granted.run(file, "user")
    assert run["state"] == "succeeded"
    assert granted.ask("logs", run["id"]).strip().endswith("a frame on a claim")
    records = kubernetes_cluster.folder / "volumes" / volume_of(kubernetes_cluster, "records")
    kept = records / "podwright" / "runs" / run["id"]
    assert (kept / "checkpoints" / "weights").read_text() == "w"
    granted.ask("prune", "--checkpoints", "--older", "0s", "--yes")
    assert (kept / "record").is_dir()
    assert not (kept / "checkpoints").exists()


def test_a_granted_namespace_is_tried_with_an_image(granted: Client, kubernetes_cluster: KubernetesLab) -> None:
    """The test runs as nobody, in a container as strict as a run's, and what it saw is printed."""
    scheduler = load_pod(kubernetes_cluster.pod_file).scheduler()
    assert scheduler.kind == "kubernetes"
    assert scheduler.image is not None
    said = granted.ask("pod", "grant", "admin", "--namespace", NAMESPACE, "--try", scheduler.image, "--yes")
    assert "uid=65534" in said
    assert kubernetes_cluster.kubectl("get", "pod", "podwright-gpu-test", f"--namespace={NAMESPACE}").returncode != 0


def test_what_was_granted_is_granted_once(granted: Client) -> None:
    again = json.loads(granted.ask("pod", "grant", "admin", "--namespace", NAMESPACE, "--yes", "--json"))
    assert {one["result"] for one in again["objects"]} == {"unchanged"}
