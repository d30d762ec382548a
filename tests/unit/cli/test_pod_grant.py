"""`podwright pod grant` as an administrator calls it, against an API server that is as small as it can be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.clients.kubernetes import api
from tests.paths import CASES
from tests.unit.engines.kubernetes.small_cluster import SmallCluster, small_cluster

POD = """\
name: adas
nodes: [{{hosts: "dgx[01-04]", model: dgx-a100}}]
storage: [{{name: scale, kind: spectrum-scale, capacity: 2PB, server: 7118073361626808055/fs1, storage_class: scale}}]
schedulers:
  - {{kind: slurm, hosts: "dgx[01-02]"}}
  - {{kind: kubernetes, hosts: "dgx[03-04]", kubeconfig: {kubeconfig}{more}}}
"""
GOLDEN = CASES / "kubernetes" / "grant.yaml"
GRANT = ["pod", "grant", "adas", "--namespace", "vision", "--group", "researchers"]
LINES = [
    "Namespace vision",
    "Role vision/podwright-run",
    "RoleBinding vision/podwright-run",
    "StorageClass scale",
    "PersistentVolumeClaim vision/scale",
]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallCluster]:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    with small_cluster() as made:
        (tmp_path / "kubeconfig").write_text(made.kubeconfig)
        add(tmp_path)
        yield made


def add(folder: Path, more: str = "") -> None:
    (folder / "pod.yaml").write_text(POD.format(kubeconfig=folder / "kubeconfig", more=more))
    assert main(["pod", "add", str(folder / "pod.yaml")]) == 0


def lines(word: str) -> str:
    return "".join(f"{word:<10}{line}\n" for line in LINES)


def test_each_object_is_told_with_what_happened(cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(GRANT) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (lines("created"), "")
    assert main(GRANT) == 0
    assert capsys.readouterr().out == lines("unchanged")
    assert main([*GRANT[:-1], "drivers"]) == 0
    assert "changed   RoleBinding vision/podwright-run\n" in capsys.readouterr().out


def test_a_dry_run_changes_nothing(cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main([*GRANT, "--dry-run"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (lines("created"), "dry run   nothing was changed\n")
    assert cluster.objects == {}


def test_render_is_what_kubectl_takes(cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main([*GRANT, "--render"]) == 0
    assert capsys.readouterr().out == GOLDEN.read_text()
    assert cluster.asked == []


def test_as_json(cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main([*GRANT, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {name: document[name] for name in ("pod", "namespace", "dry_run")} == {
        "pod": "adas",
        "namespace": "vision",
        "dry_run": False,
    }
    row = {"result": "created", "kind": "PersistentVolumeClaim", "name": "scale", "namespace": "vision"}
    assert document["objects"][-1] == row


def test_the_namespace_is_that_of_the_context(cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["pod", "grant", "adas"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "created   Namespace home"
    assert captured.err.startswith("next      name the users who may run things there with `--group`")


def test_what_the_user_may_not_do_is_told_first(cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.forbidden = {("create", "storageclasses"), ("patch", "storageclasses"), ("create", "roles")}
    capsys.readouterr()
    assert main(GRANT) == 3
    assert capsys.readouterr().err == (
        "you may not create roles in the namespace vision, create and patch storageclasses in the cluster\n\n"
        "hint: a cluster administrator may: send the output of `--render`, which `kubectl apply --server-side -f -`"
        " takes\n"
    )
    assert cluster.objects == {}


def test_a_cluster_that_is_no_openshift(
    cluster: SmallCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(tmp_path, ", dialect: openshift")
    cluster.unknown = {"security.openshift.io"}
    capsys.readouterr()
    assert main(GRANT) == 2
    assert capsys.readouterr().err == (
        "the cluster does not know SecurityContextConstraints (security.openshift.io/v1)\n\n"
        "hint: `dialect:` of the scheduler in the pod file says what it is\n"
    )


REFUSED = [
    (
        ["--scheduler", "slurm"],
        "the scheduler slurm of the pod adas is slurm, not Kubernetes\n\nhint: its Kubernetes is kubernetes\n",
    ),
    (
        ["--namespace", "Vision"],
        '--namespace: "Vision" cannot be the name of a namespace\n\n'
        "hint: lower-case letters, digits and dashes, at most 63\n",
    ),
]


@pytest.mark.parametrize(("words", "told"), REFUSED)
@pytest.mark.usefixtures("cluster")
def test_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["pod", "grant", "adas", *words]) == 2
    assert capsys.readouterr().err == told


def test_a_server_that_is_away(
    cluster: SmallCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(api, "PAUSES_S", (0.0,))
    dead = cluster.kubeconfig.replace(f":{cluster.server_address[1]}", ":1")
    (tmp_path / "kubeconfig").write_text(dead)
    capsys.readouterr()
    assert main(GRANT) == 3
    assert "http://127.0.0.1:1 cannot be reached: connection refused" in capsys.readouterr().err
