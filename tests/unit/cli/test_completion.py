"""What a shell is told could follow."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podwright.cli import options
from podwright.cli.main import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    for age, name in enumerate(["seg-7f3k", "seg-8abc", "lm-0001"]):
        folder = tmp_path / "home" / "runs" / name
        folder.mkdir(parents=True)
        os.utime(folder, (1000 - age, 1000 - age))
    return tmp_path / "home"


def completed(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Asks as bash does, for the last of the words."""
    monkeypatch.setenv("_PODWRIGHT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert main([]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.split()


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("podwright s", ["show", "shell", "sync", "schema"]),
        ("podwright run --det", ["--detach"]),
        ("podwright schema ", ["pod", "workload"]),
        ("podwright show se", ["seg-7f3k", "seg-8abc"]),
        ("podwright logs ", ["last", "seg-7f3k", "seg-8abc", "lm-0001"]),
        ("podwright wait lm-0001 l", ["last", "lm-0001"]),
        ("podwright run w.yaml --after lm", ["lm-0001"]),
    ],
)
@pytest.mark.usefixtures("home")
def test_completion(
    words: str, answers: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completed(words, monkeypatch, capsys) == answers


def test_no_home_is_no_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "none"))
    assert options.complete_run("x") == []


def test_files_are_folders_and_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.yaml", "b.yml", "c.txt", ".hidden.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "d.yaml").touch()
    assert options.complete_file("") == ["a.yaml", "b.yml", "jobs/"]
    assert options.complete_file("jobs/") == ["jobs/d.yaml"]
    assert options.complete_file("none/") == []
