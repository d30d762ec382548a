"""`podwright image` as a user calls it, where nothing must be built; tests/real/test_images.py builds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.cli.main import main
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "images" / "recipes"
FULL = CASES / "full"


@pytest.fixture
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without podman and buildah."""
    monkeypatch.setenv("PATH", str(tmp_path))


def test_render_prints_the_containerfile(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "render", str(FULL / "workload.yaml")]) == 0
    assert capsys.readouterr().out == (FULL / "expected" / "Containerfile").read_text()


def test_render_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "Containerfile"
    assert main(["image", "render", str(FULL / "workload.yaml"), "--out", str(out)]) == 0
    assert out.read_text() == (FULL / "expected" / "Containerfile").read_text()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", f"wrote     {out}\n")


def test_render_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "render", str(FULL / "workload.yaml"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["files"] == ["settings/classes.yaml", "settings/deep/more.yaml", "start.sh"]
    assert document["name"] == f"localhost/podwright/segmentation:{document['digest'][7:19]}"


@pytest.mark.usefixtures("no_programs")
@pytest.mark.parametrize("words", [["build"], ["inspect"]])
def test_without_a_program_that_builds(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", *words, str(FULL / "workload.yaml")]) == 2
    assert capsys.readouterr().err == (
        "images are built with podman or buildah, and neither is on this machine\n\n"
        "hint: apt-get install podman buildah runc\n"
    )


def test_push_wants_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["image", "push", str(FULL / "workload.yaml")]) == 2
    assert "--to" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "nowhere" / "Containerfile"
    assert main(["image", "render", str(FULL / "workload.yaml"), "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"{out} cannot be written: no such file or directory\n\nhint: name another place\n"
    )
