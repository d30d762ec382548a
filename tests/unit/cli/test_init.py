"""`podwright init` as a user calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from podwright import spec
from podwright.cli.main import main
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "init"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "biggan"
    shutil.copytree(CASES / "biggan" / "folder", made)
    monkeypatch.chdir(made)
    return made


def test_it_writes_the_file_and_says_what_it_guessed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "train.py"]) == 0
    assert (folder / "workload.yaml").read_text() == (CASES / "biggan" / "expected.yaml").read_text()
    captured = capsys.readouterr()
    assert captured.out == "workload.yaml\n"
    assert "guessed   resources: {gpus: 0}   (it does not use CUDA)\n" in captured.err
    assert captured.err.endswith("next      podwright run workload.yaml\n")


def test_what_is_there_is_never_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "workload.yaml").write_text("mine")
    assert main(["init", "train.py"]) == 2
    assert (folder / "workload.yaml").read_text() == "mine"
    assert capsys.readouterr().err == (
        "workload.yaml is there already\n\nhint: remove it first, or write elsewhere with --out\n"
    )


def test_words_after_the_dashes_are_the_scripts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "train.py", "--out", "small.yaml", "--json", "--", "--model", "large", "--seed", "{7}"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["file"], document["name"], document["missing"]) == ("small.yaml", "biggan", [])
    workload = spec.load_workload(folder / "small.yaml")
    assert workload.argv == ("python3", "train.py", "--model", "large", "--seed", "{7}")


def test_what_the_script_wants_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(CASES / "cuda" / "folder" / "main.py", folder / "main.py")
    assert main(["init", "main.py"]) == 0
    assert "missing   images, --lr: the script wants it; add it to the command\n" in capsys.readouterr().err


REFUSALS = {
    "no file": ("nothing.py", "nothing.py cannot be read: no such file or directory\n"),
    "no Python": (
        "old.py",
        "old.py:1: is not read as Python 3: Missing parentheses in call to 'print'. Did you mean print(...)?\n\n"
        "hint: write the workload by hand\n",
    ),
    "elsewhere": (
        "../other.py --out workload.yaml",
        "../other.py is not below .\n\nhint: the workload's folder is what travels with a run\n",
    ),
    "a folder": (".", ". cannot be read: is a directory\n"),
}


@pytest.mark.parametrize(("words", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal(folder: Path, capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    (folder / "old.py").write_text("print 'hello'\n")
    (folder.parent / "other.py").write_text("pass\n")
    assert main(["init", *words.split()]) == 2
    assert capsys.readouterr().err == message
    assert not (folder / "workload.yaml").exists()


def test_a_module_beside_it_that_is_no_python_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "models.py").write_text("class {\n")
    assert main(["init", "train.py"]) == 2
    assert capsys.readouterr().err.startswith("models:1: is not read as Python 3: invalid syntax\n")
