"""Staging on a real Kubernetes: the source is a server on a node of it that counts what is read from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.kubernetes import KubernetesLab
from podwright.launch import Run, pods
from tests.contract.sites import END_S, KubernetesSite
from tests.real.labs import ON_KUBERNETES
from tests.real.serving import LabServer, serving
from tests.real.test_staging import FILES, PROGRAM, SIZE, expected, make_files, seen, select, staged

pytestmark = [*ON_KUBERNETES, pytest.mark.nightly]
NODE = "n1"
TOTAL = FILES * (SIZE // 32 * 32)
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "staged", "namespace": "lab"},
    "spec": {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "lab",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


class StagingCluster(KubernetesSite):
    """A lab with a server of files on its hub."""

    server: LabServer

    def __init__(self, lab: KubernetesLab, folder: Path) -> None:
        super().__init__(lab, folder)
        self.files = make_files(folder / "frames")

    def keep_data_on(self, claim: str) -> None:
        path = self.folder / "pod.yaml"
        path.write_text(f"{self.lab.pod_file.read_text()}cache: {{claim: {claim}}}\n")
        pods.add(self.home, path)

    def look(self) -> Run:
        code = self.folder / "code"
        code.mkdir(exist_ok=True)
        (code / "look.py").write_text(PROGRAM)
        data = "{frames: 'selection:far'}"
        return self.start(command="python3 look.py {data.frames}", code=str(code), data=data, nodes=2)


@pytest.fixture
def site(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Iterator[StagingCluster]:
    tmp_path.chmod(0o755)
    site = StagingCluster(kubernetes_cluster, tmp_path)
    counts = tmp_path / "counts"
    machines = kubernetes_cluster.machines
    host = machines.addresses[NODE].partition("/")[0]
    with serving(machines, NODE, host, tmp_path / "frames", counts) as site.server:
        select(site.session, site.server.address, site.files)
        yield site
    site.close()


def test_two_nodes_read_the_source_once_and_what_is_not_kept_is_said(site: StagingCluster) -> None:
    run = site.look()
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("succeeded", "")
    assert seen(run) == {expected(site.files)}
    assert site.server.sent() == TOTAL
    events = staged(run)
    assert sum(event.from_source or 0 for event in events) == TOTAL
    assert sum(event.from_peers or 0 for event in events) == TOTAL
    assert any("data is brought again for every run" in gap for gap in run.folder.gaps())


def test_a_claim_keeps_what_came_for_the_next_run(site: StagingCluster) -> None:
    made = site.lab.kubectl("apply", "--filename=-", give=json.dumps(CLAIM), admin=True)
    assert made.returncode == 0, made.stderr
    try:
        site.keep_data_on("staged")
        first = site.look()
        assert first.wait(END_S).state == "succeeded", first.explain()
        assert site.server.sent() == TOTAL
        again = site.look()
        assert again.wait(END_S).state == "succeeded", again.explain()
        assert seen(again) == {expected(site.files)}
        assert site.server.sent() == TOTAL
        assert [event.reused for event in staged(again)] == [TOTAL, TOTAL]
        assert not any("data is brought anew" in gap for gap in again.folder.gaps())
    finally:
        site.lab.kubectl("delete", "pvc", "staged", "--namespace=lab", "--wait=false", admin=True)
