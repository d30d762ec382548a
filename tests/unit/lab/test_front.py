"""The door of labs: what a request says, and what only one kind of lab has."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright import lab
from podwright.lab.folder import keep
from podwright.spec.problems import Refusal


def test_a_request_says_of_the_shape_what_was_said_of_it() -> None:
    assert lab.LabRequest("slurm").fields() == {}
    request = lab.LabRequest("slurm", nodes=0, gpus=3, no_accounting=True)
    assert request.fields() == {"nodes": 0, "gpus": 3, "accounting": False}
    assert lab.LabRequest("kubernetes", virtual_nodes=0).fields() == {"virtual_nodes": 0}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lab.LabRequest("slurm", use_context="kind"), "--use-context: only a Kubernetes lab has this"),
        (lab.LabRequest("hosts", virtual_nodes=0), "--virtual-nodes: only a Kubernetes lab has this"),
        (lab.LabRequest("kubernetes", no_accounting=True), "--no-accounting: only a Slurm lab has this"),
    ],
)
def test_what_only_another_kind_has_is_refused_before_anything_is_started(
    request_: lab.LabRequest, message: str
) -> None:
    with pytest.raises(Refusal) as caught:
        lab.up(request_)
    assert str(caught.value) == message


def test_a_lab_is_found_and_taken_down_with_its_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path))
    folder, pod = tmp_path / "labs" / "mine", tmp_path / "pods" / "mine.yaml"
    folder.mkdir(parents=True)
    pod.parent.mkdir()
    pod.write_text("name: mine\n")
    keep(folder, "borrowed-kubernetes", loan={"context": "none", "name": "mine"})
    assert lab.take_down(lab.find()) == []
    assert (folder.exists(), pod.exists()) == (False, False)
    with pytest.raises(Refusal, match="there is no lab"):
        lab.find()
