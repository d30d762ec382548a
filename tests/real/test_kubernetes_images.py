"""From a workload's `build:` to a container of it on a real Kubernetes, by way of a real registry."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.kubernetes import KubernetesLab
from tests.real.clients import Client, pods
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
COMMAND = "command: python3 -c \"import os; print(open('/etc/toy/words').read().strip(), os.getuid())\"\n"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A place for images that goes with the test, so that nobody's are touched."""
    folder = Path(tempfile.mkdtemp(prefix="pwimg-", dir="/tmp"))
    (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(folder / "storage.conf"))
    yield
    podman("rmi", "--all", "--force")
    subprocess.run(["umount", str(folder / "graph" / "overlay")], capture_output=True, check=False)
    shutil.rmtree(folder)


def podman(*words: str) -> None:
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("store")
def test_an_image_is_built_pushed_fetched_by_a_node_and_run(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> None:
    podman("pull", "--quiet", "--tls-verify=false", kubernetes_cluster.image)
    client = Client(tmp_path, kubernetes_cluster.pod_file)
    file = tmp_path / "toy.yaml"
    (tmp_path / "words").write_text("built here")
    build = f"build: {{base: {kubernetes_cluster.image}, files: {{words: /etc/toy/words}}}}\n"
    file.write_text(f"name: toy\n{COMMAND}{build}")
    client.ask("image", "build", str(file))
    client.ask("run", str(file), "--on", kubernetes_cluster.name, code=2)  # no node could fetch it yet
    registry = kubernetes_cluster.image.partition("/")[0]
    pinned = client.ask("image", "push", str(file), "--to", f"{registry}/team/toy").strip()
    file.write_text(f"name: toy\n{COMMAND}image: {pinned}\n")
    run = client.run(file, kubernetes_cluster.name)
    assert run["state"] == "succeeded"
    assert client.ask("logs", run["id"]).strip().endswith("built here 1000")
    (pod,) = pods(kubernetes_cluster, run["id"])
    digest = pinned.partition("@")[2]
    assert pod["status"]["containerStatuses"][0]["imageID"].endswith(digest), "what was pushed is what ran"
