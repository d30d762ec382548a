"""The Pod Security of a namespace that is granted: what it has is changed only where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright import spec
from podwright.bringup.kubernetes.grant import RULES, grant_objects
from podwright.clients.kubernetes.api import Api
from podwright.clients.kubernetes.apply import ENFORCED, apply_objects
from podwright.clients.kubernetes.kubeconfig import read_entry
from tests.paths import CASES
from tests.unit.engines.kubernetes.small_cluster import SmallCluster, small_cluster

NAMESPACE = "/api/v1/namespaces/vision"


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with small_cluster() as made:
        yield made


@pytest.fixture
def api(cluster: SmallCluster, tmp_path: Path) -> Iterator[Api]:
    (tmp_path / "config").write_text(cluster.kubeconfig)
    made = Api(read_entry(str(tmp_path / "config"), None))
    yield made
    made.close()


def granted(rdma: bool = False) -> list[dict[str, object]]:
    pod = spec.load_pod(CASES / "kubernetes" / "ranks-claim" / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    return grant_objects(pod.model_copy(update={"storage": ()}), scheduler, "vision", None, rdma)


@pytest.mark.parametrize(
    ("there", "rdma", "after"),
    [
        (None, False, "restricted"),
        ("", False, "restricted"),
        ("baseline", False, "baseline"),
        ("privileged", False, "privileged"),
        (None, True, "privileged"),
        ("restricted", True, "privileged"),
    ],
)
def test_pod_security(cluster: SmallCluster, api: Api, there: str | None, rdma: bool, after: str) -> None:
    if there is not None:
        labels = {ENFORCED: there} if there else {}
        cluster.objects[NAMESPACE] = {"metadata": {"name": "vision", "labels": labels}}
    apply_objects(api, granted(rdma))
    assert cluster.objects[NAMESPACE]["metadata"]["labels"][ENFORCED] == after


def test_the_reason_stands_beside_what_is_let_through() -> None:
    namespace = granted(rdma=True)[0]["metadata"]
    assert isinstance(namespace, dict)
    assert "IPC_LOCK" in namespace["annotations"]["podwright.dev/reason"]


def test_secrets_are_not_read_back_and_many_runs_end_at_once() -> None:
    verbs = {kind: verbs for _, kinds, verbs in RULES for kind in kinds}
    assert "get" not in verbs["secrets"]
    assert "deletecollection" in verbs["jobs"]
