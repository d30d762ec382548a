"""Where a run's code came from, and the words for a file that stayed behind."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from podwright.launch.origin import left_behind, origin_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work" / "data").mkdir(parents=True)
    (tmp_path / "work" / "train.py").write_text("print(1)\n")
    (tmp_path / "work" / "data" / "train.bin").write_text("numbers")
    return tmp_path / "work"


@pytest.fixture
def tar(tmp_path: Path) -> Path:
    path = tmp_path / "code.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("train.py"), io.BytesIO())
    return path


def git(folder: Path, *words: str) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, capture_output=True, env=environ)


def test_a_folder_without_a_commit_is_only_a_folder(folder: Path) -> None:
    assert origin_of(folder).as_json() == {"folder": str(folder), "commit": None, "changed": False}
    git(folder, "init", "-q")
    assert origin_of(folder).commit is None


def test_commit_and_changes_are_kept(folder: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "train.py")
    git(folder, "commit", "-qm", "first")
    clean = origin_of(folder)
    assert clean.commit
    assert len(clean.commit) == 40
    assert (clean.changed, clean.diff) == (False, b"")
    (folder / "train.py").write_text("print(2)\n")
    changed = origin_of(folder)
    assert (changed.commit, changed.changed) == (clean.commit, True)
    assert b"-print(1)\n+print(2)" in changed.diff


WORDS = "data/train.bin is ignored by git and did not travel: name it under `data:` or `include:`"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data/train.bin'", WORDS),
        ("FileNotFoundError: [Errno 2] No such file or directory: './data/../data/train.bin'", WORDS),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/r-1/code-e32f9eeb3ff3/data/train.bin'", WORDS),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'train.py'", None),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.bin'", None),
        ("FileNotFoundError: [Errno 2] No such file or directory: '../work/data/train.bin'", None),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'", None),
        ("ValueError: data/train.bin", None),
    ],
)
def test_a_file_that_stayed_behind_is_named(folder: Path, tar: Path, line: str, answer: str | None) -> None:
    assert left_behind({"folder": str(folder)}, tar, ["Traceback", line]) == answer


def test_runs_of_older_versions_have_no_folder(tar: Path) -> None:
    assert left_behind({"sha256": "0"}, tar, ["No such file or directory: 'a'"]) is None
    assert left_behind(None, tar, ["No such file or directory: 'a'"]) is None
