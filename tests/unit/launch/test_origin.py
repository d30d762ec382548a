"""Where a run's code came from, and the words for a file that stayed behind."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from podwright.launch.origin import left_behind, origin_of
from tests.fixtures.hostile import NO_PLAIN_FILES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work" / "data").mkdir(parents=True)
    (tmp_path / "work" / "train.py").write_text("print(1)\n")
    (tmp_path / "work" / "data" / "train.bin").write_text("numbers")
    return tmp_path / "work"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "job").mkdir(parents=True)
    with tarfile.open(tmp_path / "run" / "job" / "code.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("train.py"), io.BytesIO())
    return tmp_path / "run"


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


def test_a_filter_that_the_repository_names_does_not_run(folder: Path, tmp_path: Path) -> None:
    git(folder, "init", "-q")
    git(folder, "add", "train.py")
    git(folder, "commit", "-qm", "first")
    for name in ("evil", "evil=too"):
        git(folder, "config", f"filter.{name}.clean", f"touch {tmp_path}/escaped; cat")
        git(folder, "config", f"filter.{name}.required", "true")
    (folder / ".gitattributes").write_text("train.py filter=evil\n*.py filter=evil=too\ntrain.py filter=evil\n")
    (folder / "train.py").write_text("print(2)\n")
    assert b"-print(1)\n+print(2)" in origin_of(folder).diff
    assert not (tmp_path / "escaped").exists()


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
def test_a_file_that_stayed_behind_is_named(folder: Path, run: Path, line: str, answer: str | None) -> None:
    assert left_behind({"folder": str(folder)}, run, ["Traceback", line]) == answer


@pytest.mark.parametrize("kind", NO_PLAIN_FILES)
def test_code_that_is_no_plain_file_any_more_says_nothing(folder: Path, run: Path, kind: str) -> None:
    (run / "job" / "code.tar").unlink()
    NO_PLAIN_FILES[kind](run / "job" / "code.tar")
    assert left_behind({"folder": str(folder)}, run, ["No such file or directory: 'data/train.bin'"]) is None


def test_runs_of_older_versions_have_no_folder(run: Path) -> None:
    assert left_behind({"sha256": "0"}, run, ["No such file or directory: 'a'"]) is None
    assert left_behind(None, run, ["No such file or directory: 'a'"]) is None
