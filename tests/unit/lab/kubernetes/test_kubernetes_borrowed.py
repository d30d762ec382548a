"""A cluster that is there already, used as a lab: a small kubectl replays what one answered."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.lab import home, kubernetes, processes
from podwright.lab.kubernetes import borrowed
from podwright.spec import Refusal, load_pod
from tests.paths import CASES as ALL_CASES
from tests.real.clients import PATIENCE_S

CASES = ALL_CASES / "lab_kubernetes"


def node(name: str, **devices: str) -> dict[str, object]:
    ready = {"type": "Ready", "status": "True"}
    capacity = {"cpu": "8", "memory": "32614936Ki", **devices}
    address = {"type": "InternalIP", "address": "172.18.0.2"}
    status = {"capacity": capacity, "conditions": [ready], "addresses": [address]}
    return {"metadata": {"name": name}, "spec": {}, "status": status}


NODES = [node("kind-worker"), node("kind-worker2"), node("gpu1", **{"nvidia.com/gpu": "4"})]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts a kubectl on PATH that knows one context; gives the file in which it notes what it was asked."""
    notes, answer = tmp_path / "notes", tmp_path / "nodes.json"
    answer.write_text(json.dumps({"items": NODES}))
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(f"""#!/bin/sh
echo "$*" >>{notes}
case "$*" in
*--context=kind*get\\ nodes*) cat {answer} ;;
*--context=kind*get\\ namespaces*) echo namespace/default ;;
*--context=kind*) ;;
*) echo 'error: context "nope" does not exist' >&2; exit 1 ;;
esac
""")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return notes


def test_a_borrowed_cluster_is_a_pod(golden: Callable[[Path, str], None], tmp_path: Path) -> None:
    loan = borrowed.Loan("kind", kubeconfig="/home/ann/kube.yaml")
    golden(CASES / "borrowed-pod.yaml", borrowed.pod_text(loan, NODES))
    pod = load_pod(CASES / "borrowed-pod.yaml")
    assert pod.compute_hosts() == ["kind-worker", "kind-worker2", "gpu1"]


def test_it_is_given_back_with_what_was_added(asked: Path) -> None:
    lab = kubernetes.borrow(home.new_folder("mine"), "kind", "mine")
    home.make_known(lab)
    assert lab.loan.words() == "3 nodes of the cluster kind"
    assert [row["kubernetes"] for row in lab.status()] == ["Ready"] * 3
    assert isinstance(home.the_lab("mine"), kubernetes.BorrowedLab)
    lab.down()
    assert not lab.folder.exists()
    said = asked.read_text().splitlines()
    assert any(line.endswith("create namespace lab") for line in said)
    assert "delete namespace lab" in said[-1]


def test_it_is_given_back_when_the_process_that_asked_for_it_has_ended(asked: Path) -> None:
    with subprocess.Popen(["sleep", "86400"]) as asker:
        lab = kubernetes.borrow(home.new_folder("mine"), "kind", "mine", ends_with=asker.pid)
        asker.kill()
        assert processes.until(lambda: not lab.folder.exists(), PATIENCE_S)
    assert "delete namespace lab" in asked.read_text().splitlines()[-1]


def test_nothing_of_it_is_broken(asked: Path) -> None:
    lab = kubernetes.borrow(home.new_folder("mine"), "kind", "mine")
    for harm in (lambda: lab.kill_node("gpu1"), lambda: lab.cut_node("gpu1"), lab.heal, lab.restart_controller):
        with pytest.raises(Refusal, match="mine is the cluster kind, which was not started here"):
            harm()


def test_a_context_that_is_not_there_is_told(asked: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        kubernetes.borrow(tmp_path / "lab", "nope")
    assert caught.value.exit_code == 3
    assert str(caught.value).startswith('--use-context: nope: error: context "nope" does not exist')
    assert not (tmp_path / "lab").exists()


def test_its_name_is_not_taken_for_a_lab_that_is_started(asked: Path) -> None:
    kubernetes.borrow(home.new_folder("mine"), "kind", "mine")
    with pytest.raises(Refusal, match="mine is there already, and of another kind"):
        home.wanted_shape(kubernetes.KubernetesLabShape(name="mine"), {})
