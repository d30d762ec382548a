"""A Route to a port of a run: what is made, and that it goes again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.kubernetes.api import Api
from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.clients.kubernetes.manifest import yaml_text
from podwright.clients.kubernetes.paths import path_of_object
from podwright.engines.kubernetes.route import exposed, route_objects
from podwright.spec.problems import Refusal
from tests.paths import ROOT
from tests.unit.engines.kubernetes.small_cluster import SmallCluster, small_cluster

FOLDER = ROOT / "tests" / "cases" / "kubernetes" / "openshift"
POD = {"metadata": {"namespace": "adas", "name": "biggan-k3x9-0-abcde"}}
INDEX = {"batch.kubernetes.io/job-completion-index": "0"}
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "biggan-k3x9", "uid": "u-1"}}


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    """It keeps what it is given; the router's answer is the test's."""
    with small_cluster() as cluster:
        cluster.objects["/api/v1/namespaces/adas"] = {"metadata": {"name": "adas"}}
        yield cluster


@pytest.fixture
def api(cluster: SmallCluster, tmp_path: Path) -> Iterator[Api]:
    (tmp_path / "kubeconfig").write_text(cluster.kubeconfig)
    api = Api(read_entry(str(tmp_path / "kubeconfig"), None))
    yield api
    api.close()


def objects() -> list[dict[str, Any]]:
    return route_objects(POD, "biggan-k3x9", 6006, INDEX)


def test_objects(golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / "route.yaml", yaml_text(objects()))


def test_it_is_there_while_it_is_held_and_belongs_to_the_run(api: Api, cluster: SmallCluster) -> None:
    *others, route = objects()
    with exposed(api, [*others, {**route, "spec": {**route["spec"], "host": "board.apps.example"}}], OWNER) as url:
        assert url == "https://board.apps.example"
        for manifest in objects():
            (owner,) = cluster.objects[path_of_object(manifest)]["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["uid"]) == ("Job", "u-1")
    assert [path for path in cluster.objects if path.endswith("-route")] == []


def test_what_was_made_goes_when_the_rest_is_refused(api: Api, cluster: SmallCluster) -> None:
    cluster.unknown.add("route.openshift.io")
    with pytest.raises(Refusal, match="Kubernetes did not make the route: the server could not find"):  # noqa: SIM117
        with exposed(api, objects(), OWNER):
            raise AssertionError
    assert [path for path in cluster.objects if path.endswith("-route")] == []
