"""`podwright image render` and `build` with `--on`: what OpenShift is given to build, and what it is told to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podwright.cli.main import main
from tests.paths import CASES
from tests.unit.engines.kubernetes.small_cluster import SmallCluster, small_cluster

GOLDEN = CASES / "kubernetes" / "openshift"
WORKLOAD = """\
name: fit
command: python fit.py
build: {{base: registry.example/base:1, apt: [git]{files}}}
"""
POD = """\
name: adas
nodes: [{{hosts: "dgx[01-04]", model: dgx-a100}}]
schedulers: [{{kind: kubernetes, dialect: {dialect}, namespace: vision, kubeconfig: {kubeconfig}}}]
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallCluster]:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with small_cluster() as made:
        made.objects["/api/v1/namespaces/vision"] = {"metadata": {"name": "vision"}}
        Path("kubeconfig").write_text(made.kubeconfig)
        Path("workload.yaml").write_text(WORKLOAD.format(files=""))
        Path("classes.txt").write_text("road\n")
        Path("files.yaml").write_text(WORKLOAD.format(files=", files: {classes.txt: /etc/classes.txt}"))
        for dialect in ("openshift", "kubernetes"):
            text = POD.format(dialect=dialect, kubeconfig=tmp_path / "kubeconfig")
            Path(f"{dialect}.yaml").write_text(text)
        yield made


CASES = {
    "image-inline": ["workload.yaml"],
    "image-files": ["files.yaml"],
    "image-git": ["files.yaml", "--git", "https://git.example/fit#main:image"],
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("cluster")
def test_render(name: str, golden: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "render", *CASES[name], "--on", "openshift.yaml"]) == 0
    golden(GOLDEN / f"{name}.yaml", capsys.readouterr().out)


def test_a_build_is_started(cluster: SmallCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "build", "workload.yaml", "--on", "openshift.yaml"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("fit:")
    assert captured.err == (
        "created   ImageStream vision/fit\ncreated   BuildConfig vision/fit\n"
        "started   the build made-1; `oc logs --namespace vision --follow build/made-1` shows it\n"
    )
    path = "/apis/build.openshift.io/v1/namespaces/vision/buildconfigs/fit"
    assert cluster.asked[-1] == ("POST", f"{path}/instantiate")
    asked = {"apiVersion": "build.openshift.io/v1", "kind": "BuildRequest", "metadata": {"name": "fit"}}
    assert json.loads(cluster.bodies[-1]) == asked
    assert cluster.objects[path]["spec"]["source"]["dockerfile"].startswith("# How the image of fit is made")


def test_files_are_the_users_to_send(cluster: SmallCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "build", "files.yaml", "--on", "openshift.yaml"]) == 0
    told = f"next      oc start-build --namespace vision fit --from-dir={tmp_path} --follow\n"
    assert capsys.readouterr().err.endswith(told)
    assert cluster.asked[-1][0] == "PATCH"


MISPLACED = [
    (["build", "--git", "https://git.example/fit"], "--git: is for images that a pod builds"),
    (["build", "--on", "openshift.yaml", "--again"], "--again: is for images that are built here"),
    (["render", "--on", "openshift.yaml", "--out", "x"], "--out: is for images that are built here"),
]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("words", "told"), MISPLACED)
def test_an_option_that_would_do_nothing_is_refused(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["image", words[0], "workload.yaml", *words[1:]]) == 2
    assert capsys.readouterr().err.splitlines()[0] == told


@pytest.mark.usefixtures("cluster")
def test_plain_kubernetes_builds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "build", "workload.yaml", "--on", "kubernetes.yaml"]) == 2
    assert capsys.readouterr().err == (
        "--on: the pod adas is no OpenShift, and Kubernetes alone builds no images\n\n"
        "hint: leave `--on` out to build here, then `podwright image push`\n"
    )
