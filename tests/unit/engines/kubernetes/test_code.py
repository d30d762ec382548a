"""Code that ConfigMaps do not hold, from the look at the registry to the layer that is there when the run begins."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright import spec
from podwright.clients.kubernetes.api import Api
from podwright.clients.kubernetes.kubeconfig import read_entry
from podwright.clients.kubernetes.names import CODE_FILE, MAX_PIECES, PIECE_BYTES
from podwright.clients.registry import Registry
from podwright.engines.base import Request
from podwright.engines.kubernetes import KubernetesEngine
from podwright.engines.kubernetes.facts import KubernetesFacts, facts_from_json
from podwright.engines.kubernetes.plan import code_pieces
from podwright.engines.kubernetes.probe import _layered, of_payload
from podwright.spec.problems import Refusal
from tests.unit.engines.kubernetes.small_cluster import small_cluster
from tests.unit.images.registry_server import registry_server
from tests.unit.images.test_layer import put_image

CODE = random.Random(1).randbytes(MAX_PIECES * PIECE_BYTES + 1)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry_server(tmp_path_factory.mktemp("registry")) as address:
        put_image(address, "base")
        yield address


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesEngine]:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "none.json"))
    (tmp_path / "pod.yaml").write_text(
        "name: adas\nnodes: [{hosts: 'n[1-2]', model: cpu-server}]\n"
        "schedulers: [{kind: kubernetes, namespace: vision}]\n"
    )
    pod = spec.load_pod(tmp_path / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    with small_cluster() as cluster:
        cluster.objects["/api/v1/namespaces/vision"] = {"metadata": {"name": "vision"}}
        (tmp_path / "kubeconfig").write_text(cluster.kubeconfig)
        api = Api(read_entry(str(tmp_path / "kubeconfig"), None))
        yield KubernetesEngine(pod, scheduler, api)
        api.close()


def request_for(tmp_path: Path, image: str) -> Request:
    (tmp_path / "workload.yaml").write_text(f"name: toy\ncommand: train\ncode: .\nimage: {image}\n")
    workload = spec.load_workload(tmp_path / "workload.yaml")
    code = {"file": "code.tar", "sha256": "c0de"}
    return Request("toy-2222", workload, None, ({},), code, {}, code_tar=io.BytesIO(CODE))


def facts_of(request: Request) -> KubernetesFacts:
    payload = of_payload(request.code_tar)
    layered = _layered(request.workload.image or "", request.code_tar, payload["code_pieces"])
    return facts_from_json({"version": [1, 35], **payload, **layered})


def test_the_code_is_in_the_registry_before_the_run_exists(
    engine: KubernetesEngine, registry: str, tmp_path: Path
) -> None:
    request = request_for(tmp_path, f"{registry}/base:1")
    job = engine.plan(request, facts_of(request))
    files = engine.render(job)
    assert json.loads(files["toy-2222/job/order.json"])["code"]["file"] == CODE_FILE
    image = json.loads(files["toy-2222/job/site.json"])["image"]
    there = Registry(registry, "base")
    assert there.manifest(image.partition("@")[2]) is None
    engine.preflight(job)
    assert there.manifest(image.partition("@")[2]) is not None
    assert facts_of(request).code_image == image


def test_an_image_that_is_not_there_is_told_with_the_code(
    engine: KubernetesEngine, registry: str, tmp_path: Path
) -> None:
    request = request_for(tmp_path, f"{registry}/none:1")
    with pytest.raises(Refusal, match=f"travels as a layer of the image: there is no image {registry}/none:1"):
        engine.plan(request, facts_of(request))


def test_what_is_far_too_much_is_only_counted() -> None:
    """The count may be higher than with more care: it is too high either way."""
    assert len(list(code_pieces(io.BytesIO(CODE)))) == MAX_PIECES + 1
    assert len(list(code_pieces(io.BytesIO(CODE * 3)))) > 2 * MAX_PIECES
