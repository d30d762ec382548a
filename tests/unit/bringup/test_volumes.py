"""Storage of a pod as Kubernetes objects, whole; and why a claim finds no volume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright import spec
from podwright.bringup.kubernetes import grant
from podwright.bringup.kubernetes.openshift import (
    binary_source,
    build_objects,
    git_source,
    gpu_test,
    grant_objects,
    inline_source,
)
from podwright.bringup.kubernetes.volumes import storage_objects
from podwright.clients.kubernetes.manifest import yaml_text
from podwright.engines.kubernetes.claims import why_unbound
from podwright.spec.problems import Refusal
from tests.paths import CASES
from tests.unit.engines.kubernetes.releases import RELEASES, validate

FOLDER = CASES / "kubernetes"
POD = """\
name: adas
nodes:
  - {hosts: "dgx[01-02]", model: dgx-a100}
schedulers:
  - {kind: kubernetes}
storage:
  - {name: scale, kind: spectrum-scale, capacity: 2PB, server: 7118073361626808055/fs1, storage_class: scale}
  - {name: frames, kind: spectrum-scale, capacity: 500TiB, server: "711807/09762E69:5D36FE8D", mount: /ibm/fs1/frames}
  - {name: home, kind: nfs, server: "nfs1:/export/home"}
  - {name: drive, kind: nfs, server: "nfs1:/export/drive", csi: nfs.csi.k8s.io}
  - {name: made, kind: nfs, server: "nfs1:/export", storage_class: nfs}
  - {name: ontap, kind: netapp, storage_class: ontap-gold, capacity: 100TB}
  - {name: scratch, kind: lustre, server: "10.1.1.1@o2ib:/scratch", capacity: 1PiB}
  - {name: weka, kind: weka, storage_class: weka}
  - {name: lone, kind: weka}
  - {name: odd, kind: beegfs, server: meta1}
"""
NAMES = ["scale", "frames", "home", "drive", "made", "ontap", "scratch", "weka"]


@pytest.fixture
def pod(tmp_path: Path) -> spec.Pod:
    (tmp_path / "pod.yaml").write_text(POD)
    return spec.load_pod(tmp_path / "pod.yaml")


def storage(pod: spec.Pod, name: str) -> spec.Storage:
    return next(one for one in pod.storage if one.name == name)


def checked(objects: list[dict[str, Any]]) -> str:
    for one in objects:
        for release in RELEASES:
            validate(one, release)
    return yaml_text(objects)


@pytest.mark.parametrize("name", NAMES)
def test_storage(pod: spec.Pod, name: str, golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / "storage" / f"{name}.yaml", checked(storage_objects(pod, storage(pod, name), "adas")))


def test_storage_that_says_too_little_is_refused(pod: spec.Pod) -> None:
    with pytest.raises(Refusal) as lone:
        storage_objects(pod, storage(pod, "lone"), "adas")
    assert str(lone.value).splitlines()[0] == "storage: the storage lone has neither a storage class nor a server"
    with pytest.raises(Refusal) as odd:
        storage_objects(pod, storage(pod, "odd"), "adas")
    assert str(odd.value).splitlines()[0] == "storage: Podwright knows no driver for beegfs"


def test_what_a_namespace_is_given(pod: spec.Pod, golden: Callable[[Path, str], None]) -> None:
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    made = grant.grant_objects(pod.model_copy(update={"storage": pod.storage[:1]}), scheduler, "vision", "researchers")
    golden(FOLDER / "grant.yaml", checked(made))
    there = scheduler.model_copy(update={"dialect": "openshift"})
    assert [one["kind"] for one in grant.grant_objects(pod.model_copy(update={"storage": ()}), there, "vision")] == [
        *("Namespace", "Role", "SecurityContextConstraints", "ServiceAccount", "Role", "RoleBinding")
    ]


OPENSHIFT = {
    "grant": grant_objects("adas"),
    "build-git": build_objects("biggan", "adas", git_source("https://git.example/biggan", "main", "image")),
    "build-binary": build_objects("biggan", "adas", binary_source()),
    "build-inline": build_objects("biggan", "adas", inline_source("FROM registry.example/base:1\nRUN true\n"), "1"),
    "gpu-test": [gpu_test("registry.example/cuda:1", "adas", {"nvidia.com/gpu": 1, "rdma/shared_ib0": 1})],
}


@pytest.mark.parametrize("name", OPENSHIFT)
def test_openshift(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(FOLDER / "openshift" / f"{name}.yaml", yaml_text(OPENSHIFT[name]))


@pytest.mark.parametrize("kind", ["ServiceAccount", "Role", "RoleBinding", "Pod"])
def test_what_kubernetes_itself_knows_is_valid(kind: str) -> None:
    found = [one for objects in OPENSHIFT.values() for one in objects if one["kind"] == kind]
    assert checked(found)


def claim(**fields: Any) -> dict[str, Any]:
    asked = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "2Ti"}}, "storageClassName": ""}
    return {"metadata": {"name": "data", "namespace": "adas"}, "spec": {**asked, **fields}}


def volume(**fields: Any) -> dict[str, Any]:
    given = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "4Ti"}, "storageClassName": ""}
    labels = fields.pop("labels", {})
    return {"metadata": {"name": "v", "labels": labels}, "spec": {**given, **fields}}


def named(name: str, provisioner: str = "x.example") -> dict[str, Any]:
    return {"metadata": {"name": name}, "provisioner": provisioner}


UNBOUND: list[tuple[dict[str, Any], list[Any] | None, list[Any] | None, str]] = [
    (claim(), [volume()], [], ""),
    (claim(), [], [], "there are no volumes"),
    (claim(), None, None, ""),
    (
        claim(),
        [
            volume(capacity={"storage": "1Ti"}),
            volume(capacity={"storage": "1Gi"}),
            volume(accessModes=["ReadWriteOnce"]),
        ],
        [],
        "no volume fits: 2 smaller than 2 TiB, 1 without ReadWriteMany",
    ),
    (
        claim(selector={"matchLabels": {"data": "a2d2"}}),
        [volume(labels={"data": "kitti"})],
        [],
        "no volume fits: 1 without the label data=a2d2",
    ),
    (claim(), [volume(claimRef={"namespace": "other", "name": "x"})], [], "no volume fits: 1 taken"),
    (claim(), [volume(claimRef={"namespace": "adas", "name": "data"})], [], ""),
    (claim(), [volume(storageClassName="fast")], [], "no volume fits: 1 of the class fast"),
    (claim(storageClassName="fast"), [], [named("slow")], "there is no storage class fast; there are slow"),
    (claim(storageClassName="fast"), [], [named("fast")], ""),
    (claim(storageClassName="fast"), [volume(storageClassName="fast")], [], ""),
    (
        claim(storageClassName="disk"),
        [volume(storageClassName="disk", accessModes=["ReadWriteOnce"])],
        [named("disk", "kubernetes.io/no-provisioner")],
        "no volume fits: 1 without ReadWriteMany",
    ),
]


@pytest.mark.parametrize(("asked", "volumes", "classes", "words"), UNBOUND)
def test_why_a_claim_is_unbound(asked: Any, volumes: Any, classes: Any, words: str) -> None:
    assert why_unbound(asked, volumes, classes) == words
