"""The pieces of a Kubernetes lab, each for itself: storage, groups, keys, images, parts, ports."""

from __future__ import annotations

import gzip
import io
import json
import socket
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright.lab import cgroups, doors
from podwright.lab.kubernetes import binaries, image, pki, provisioner
from podwright.lab.kubernetes.control import is_usable, state_of
from podwright.lab.kubernetes.shape import KubernetesLabShape

CLAIM: dict[str, Any] = {
    "metadata": {"name": "data", "namespace": "lab", "uid": "1234"},
    "spec": {
        "storageClassName": "lab",
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "5Gi"}},
    },
}


def test_a_claim_gets_a_folder_of_the_machine() -> None:
    volume = provisioner.volume_for(CLAIM, "lab", Path("/volumes"))
    assert volume is not None
    spec = volume["spec"]
    assert spec["hostPath"] == {"path": "/volumes/pvc-1234", "type": "Directory"}
    assert spec["claimRef"]["uid"] == "1234"
    assert (spec["capacity"], spec["accessModes"]) == ({"storage": "5Gi"}, ["ReadWriteMany"])


@pytest.mark.parametrize(
    ("spec", "metadata"),
    [({"storageClassName": "other"}, {}), ({"volumeName": "pvc-1"}, {}), ({}, {"deletionTimestamp": "now"})],
)
def test_claims_that_are_not_ours_to_fill(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
    claim = {"spec": {**CLAIM["spec"], **spec}, "metadata": {**CLAIM["metadata"], **metadata}}
    assert provisioner.volume_for(claim, "lab", Path("/volumes")) is None


@pytest.mark.parametrize(
    ("phase", "by", "left"),
    [("Released", provisioner.PROVISIONER, True), ("Bound", provisioner.PROVISIONER, False), ("Released", "x", False)],
)
def test_only_own_volumes_without_a_claim_are_taken_back(phase: str, by: str, left: bool) -> None:
    volume = {"metadata": {"annotations": {"pv.kubernetes.io/provisioned-by": by}}, "status": {"phase": phase}}
    assert provisioner.is_left(volume) is left


def test_groups_under_cgroup_v1(tmp_path: Path) -> None:
    """Plain folders stand for hierarchies; the one that carries no controller is left alone."""
    for name in ("cpuset", "memory", "unified"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").touch()
    cgroups.make(Path("/labs/one"), "n1", tmp_path)
    tree = cgroups.tree(Path("/labs/one"))
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*/*")) == [
        f"cpuset/{tree}/n1",
        f"memory/{tree}/n1",
    ]
    cgroups.remove(Path("/labs/one"), tmp_path)
    assert not list(tmp_path.glob("*/podwright-*"))


def test_groups_under_cgroup_v2_get_their_controllers(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.subtree_control").touch()
    cgroups.make(Path("/labs/one"), "n1", tmp_path)
    assert (tmp_path / cgroups.tree(Path("/labs/one")) / "n1").is_dir()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory"


def test_two_labs_have_two_trees() -> None:
    assert cgroups.tree(Path("/labs/one")) != cgroups.tree(Path("/labs/two"))


def test_keys_are_roots_alone_and_certificates_say_who(tmp_path: Path) -> None:
    keys = tmp_path / "pki"
    wanted = [one for one in pki.certificates(KubernetesLabShape(nodes=1)) if one.file in ("user", "n1")]
    pki.make_all(keys, wanted)
    assert {path.stat().st_mode & 0o777 for path in keys.glob("*.key")} == {0o600}
    said = subprocess.run(
        ["openssl", "x509", "-in", keys / "n1.crt", "-noout", "-subject", "-ext", "subjectAltName"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "O = system:nodes, CN = system:node:n1" in said
    assert "IP Address:10.77.1.1, DNS:n1" in said
    subprocess.run(["openssl", "verify", "-CAfile", keys / "ca.crt", keys / "user.crt"], check=True)
    before = (keys / "user.crt").read_bytes()
    pki.make_all(keys, wanted)
    assert (keys / "user.crt").read_bytes() == before


def test_a_kubeconfig_holds_all_it_needs(tmp_path: Path) -> None:
    for name in ("ca.crt", "user.crt", "user.key"):
        (tmp_path / name).write_text(name)
    config = yaml.safe_load(pki.kubeconfig(tmp_path, "user", "https://127.0.0.1:20001", "lab-kubernetes"))
    assert config["current-context"] == "lab-kubernetes"
    assert config["contexts"][0]["context"]["namespace"] == "lab"
    assert config["clusters"][0]["cluster"]["certificate-authority-data"] == "Y2EuY3J0"


def test_the_pause_image_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "pause").write_bytes(b"program")
    made = image.pause(tmp_path / "pause")
    packed = made.layer.file.read_bytes()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as tar:
        assert [(entry.name, entry.mode) for entry in tar] == [("pause", 0o755)]
    manifest = json.loads(made.manifest())
    assert manifest["layers"][0]["digest"] == image.digest_of(packed)
    assert manifest["config"]["digest"] == image.digest_of(made.config)
    assert json.loads(made.config)["rootfs"]["diff_ids"] == [image.digest_of(gzip.decompress(packed))]
    assert image.pause(tmp_path / "pause") == made


def test_parts_of_the_machine_go_before_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert binaries.find({}) is None
    binaries.cache().mkdir(parents=True)
    assets = tmp_path / "assets"
    assets.mkdir()
    release = binaries.version().rpartition(".")[0]
    for name, version in (("kubelet", f"{release}.99"), ("kube-proxy", "v1.20.0")):
        (assets / name).write_text(f"#!/bin/sh\necho Kubernetes {version}\n")
        (assets / name).chmod(0o755)
    found = binaries.find({"KUBEBUILDER_ASSETS": str(assets), "PATH": ""})
    assert found is not None
    assert found["kubelet"] == assets / "kubelet"
    assert found["kube-proxy"] == binaries.cache() / "kube-proxy"
    assert found["etcd"] == binaries.cache() / "etcd"


def test_a_lab_keeps_its_parts_until_they_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "etcd").touch()
    binaries.keep({"etcd": tmp_path / "etcd"}, tmp_path / "parts.json")
    assert binaries.kept(tmp_path / "parts.json") == {"etcd": tmp_path / "etcd"}
    (tmp_path / "etcd").unlink()
    assert binaries.kept(tmp_path / "parts.json") is None


def test_the_cache_is_named_after_the_release() -> None:
    assert binaries.cache().name.startswith(f"{binaries.version()}-")


def test_ports_are_free_and_below_those_of_outgoing_connections() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in doors.choose(2):
        assert port < first
        with socket.create_server(("127.0.0.1", port)) as server:
            assert server.getsockname() == ("127.0.0.1", port)


READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "spec": {}}


def test_a_node_is_used_once_its_taint_is_gone() -> None:
    assert (state_of(READY), is_usable(READY)) == ("Ready", True)
    tainted = {**READY, "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}}
    assert (state_of(tainted), is_usable(tainted)) == ("Ready", False)
    assert state_of({}) == "NotReady"
