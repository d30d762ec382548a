"""A ConfigMap that all users of a namespace share is compared before a run of ours uses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.kubernetes.api import Api
from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.engines.kubernetes.submit import _is_shared, _map
from podwright.spec.problems import Refusal
from tests.unit.engines.kubernetes.small_cluster import SmallCluster, small_cluster

PATH = "/api/v1/namespaces/vision/configmaps/podwright-pilot-0123456789ab"
OURS = _map({"namespace": "vision"}, "podwright-pilot-0123456789ab", {"pilot.pyz": b"good", "enter.sh": b"exec\n"})
OWNER = b'{"metadata": {"ownerReferences": [{"name": "toy-2222", "uid": "7"}]}}'


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as cluster:
        cluster.objects["/api/v1/namespaces/vision"] = {"metadata": {"name": "vision"}}
        yield cluster


@pytest.fixture
def api(cluster: SmallCluster, tmp_path: Path) -> Iterator[Api]:
    (tmp_path / "kubeconfig").write_text(cluster.kubeconfig)
    api = Api(read_entry(str(tmp_path / "kubeconfig"), None))
    yield api
    api.close()


def test_the_same_content_is_shared(cluster: SmallCluster, api: Api) -> None:
    cluster.objects[PATH] = OURS
    assert _is_shared(api, PATH, OURS, OWNER)
    assert cluster.objects[PATH]["metadata"]["ownerReferences"][0]["name"] == "toy-2222"


def test_one_that_is_not_there_is_made(api: Api) -> None:
    assert not _is_shared(api, PATH, OURS, OWNER)


OTHERS: dict[str, dict[str, Any]] = {
    "another pilot": {**OURS, "binaryData": {**OURS["binaryData"], "pilot.pyz": "ZXZpbA=="}},
    "one file more": {**OURS, "data": {"sitecustomize.py": "evil"}},
    "one file less": {**OURS, "binaryData": {"pilot.pyz": OURS["binaryData"]["pilot.pyz"]}},
    "one that can be changed later": {**OURS, "immutable": False},
}


@pytest.mark.parametrize("there", OTHERS.values(), ids=OTHERS)
def test_any_other_content_is_refused_and_left_alone(cluster: SmallCluster, api: Api, there: dict[str, Any]) -> None:
    cluster.objects[PATH] = there
    with pytest.raises(Refusal) as caught:
        _is_shared(api, PATH, OURS, OWNER)
    problem = caught.value.problems[0]
    name = "podwright-pilot-0123456789ab"
    assert problem.message == f"the ConfigMap {name} in the namespace vision does not hold what its name says"
    assert f"kubectl -n vision delete configmap {name}" in str(problem.hint)
    assert cluster.objects[PATH] == there
