"""What a run needs is made again where somebody has deleted it, by whoever looks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.kubernetes.api import Api
from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.engines.kubernetes.plan import OBJECTS
from podwright.engines.kubernetes.submit import _map, mend
from podwright.runs import Home, RunFolder
from tests.unit.engines.kubernetes.small_cluster import SmallCluster, small_cluster
from tests.unit.runs.made import asked

SPACE = "/api/v1/namespaces/vision"
SITE = {
    "namespace": "vision",
    "kind": "Job",
    "claim": "c",
    "payload": {"name": "pilot-0", "files": ["a.sh"]},
    "code": [],
}
JOB = {"metadata": {"name": "toy-2222", "uid": "7"}}
MADE_AGAIN = [("PATCH", f"{SPACE}/configmaps/toy-2222"), ("PATCH", f"{SPACE}/services/toy-2222")]


def manifest(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "toy-2222", "namespace": "vision"}, **fields}


SECRET = manifest("Secret")
SECRET["metadata"]["annotations"] = {"podwright.dev/holds": "token env.KEY"}
OTHERS = [manifest("ConfigMap", data={"order.json": "{}"}), SECRET, manifest("Service")]


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as cluster:
        cluster.objects[SPACE] = {"metadata": {"name": "vision"}}
        yield cluster


@pytest.fixture
def api(cluster: SmallCluster, tmp_path: Path) -> Iterator[Api]:
    (tmp_path / "kubeconfig").write_text(cluster.kubeconfig)
    api = Api(read_entry(str(tmp_path / "kubeconfig"), None))
    yield api
    api.close()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    text = "\n---\n".join(json.dumps(made) for made in [*OTHERS, manifest("Job")])
    files = {OBJECTS: text.encode(), "job/a.sh": b"exec", "token": b"t"}
    return Home.open(tmp_path / "home").create(asked(workload={"secrets": ["KEY"]}), files, {})


def changes(cluster: SmallCluster) -> list[tuple[str, str]]:
    return [row for row in cluster.asked if row[0] != "GET"]


def test_what_is_gone_is_made_again_and_goes_with_the_run(cluster: SmallCluster, api: Api, folder: RunFolder) -> None:
    mend(api, SITE, folder, JOB, is_stuck=False)
    assert changes(cluster) == MADE_AGAIN
    owners = cluster.objects[f"{SPACE}/services/toy-2222"]["metadata"]["ownerReferences"]
    assert owners == [{"apiVersion": "batch/v1", "kind": "Job", "name": "toy-2222", "uid": "7"}]
    mend(api, SITE, folder, JOB, is_stuck=False)
    assert changes(cluster) == MADE_AGAIN, "what is there is left alone"


@pytest.mark.parametrize("known", [True, False])
def test_a_secret_is_made_again_where_its_values_are_known(
    cluster: SmallCluster, api: Api, folder: RunFolder, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody may look whether it is there."""
    if known:
        monkeypatch.setenv("KEY", "hush")
    cluster.objects[f"{SPACE}/configmaps/pilot-0"] = _map(SITE, "pilot-0", {"a.sh": b"exec"})
    mend(api, SITE, folder, JOB, is_stuck=True)
    posted = [json.loads(body) for body in cluster.bodies]
    assert [body["data"] for body in posted] == [{"token": "dA==", "env.KEY": "aHVzaA=="}] * known


def test_what_runs_share_is_made_again(cluster: SmallCluster, api: Api, folder: RunFolder) -> None:
    mend(api, SITE, folder, JOB, is_stuck=True)
    assert [json.loads(body)["metadata"]["name"] for body in cluster.bodies] == ["pilot-0"]
