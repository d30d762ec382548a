"""`podwright pod`: what becomes a target, and what does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.cli.main import main

ONE = """\
name: adas
title: The pod of the driving group
nodes: [{hosts: "dgx[001-140]", model: dgx-a100}, {hosts: "m[1-3]", model: cpu-server, roles: [management]}]
schedulers: [{kind: slurm, login: login1}]
"""
TWO = """\
name: both
nodes: [{hosts: "n[1-4]", model: dgx-a100}]
schedulers: [{kind: slurm, hosts: "n[1-2]"}, {kind: kubernetes, hosts: "n[3-4]"}]
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    for name, text in (("one", ONE), ("two", TWO), ("bad", "name: bad\n")):
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def test_pods_are_added_listed_and_forgotten(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pod", "ls"]) == 0
    assert capsys.readouterr().err == "no pods   make one known with `podwright pod add POD.yaml`\n"
    assert main(["pod", "add", str(files / "one.yaml")]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (
        "adas\n",
        "added     adas; targets: adas\ntrust     `trust: [adas]` in settings.yaml has values of its runs unpickled\n",
    )
    assert main(["pod", "add", str(files / "two.yaml")]) == 0
    capsys.readouterr()
    assert main(["pod", "ls"]) == 0
    assert capsys.readouterr().out == (
        "POD   NODES  GPUS  TARGETS                      TITLE\n"
        "adas  140    1120  adas                         The pod of the driving group\n"
        "both  4      32    both:slurm, both:kubernetes\n"
    )
    assert main(["pod", "forget", "adas"]) == 0
    assert capsys.readouterr().err == "forgotten adas\n"
    assert main(["pod", "forget", "adas"]) == 2
    assert capsys.readouterr().err == "there is no pod 'adas'\n\nhint: known pods: both\n"


def test_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = {
        "name": "both",
        "title": None,
        "nodes": 4,
        "gpus": 32,
        "schedulers": ["slurm", "kubernetes"],
        "targets": ["both:slurm", "both:kubernetes"],
    }
    assert main(["pod", "add", str(files / "two.yaml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == row
    assert main(["pod", "ls", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [row]
    assert main(["pod", "forget", "both", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "both", "forgotten": True}


def test_a_file_that_is_wrong_is_not_made_known(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pod", "add", str(files / "bad.yaml")]) == 2
    assert "nodes: is missing" in capsys.readouterr().err
    assert not (files / "home" / "pods").exists()


def test_a_name_is_no_path(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = files / "one.yaml"
    assert main(["pod", "forget", "../../one"]) == 2
    assert main(["pod", "forget", str(kept)]) == 2
    assert kept.exists()
