"""What a lab's user may see: closed folders are covered, and only what is needed shines through."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from podwright.lab.mask import Shown, may_enter, needed_folders, veils
from podwright.lab.user import LabUser


def make(tmp_path: Path, *folders: str) -> list[Path]:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True)
    return [tmp_path / folder for folder in folders]


def test_open_folders_need_no_veil(tmp_path: Path) -> None:
    assert veils(make(tmp_path, "a/b"), lambda folder: True) == {}


def test_the_outermost_closed_folder_is_covered(tmp_path: Path) -> None:
    python, env = make(tmp_path, "root/.pyenv/3.11", "root/work/.venv")
    closed = {tmp_path / "root", tmp_path / "root/work"}
    found = veils([python, env], lambda folder: folder not in closed)
    assert found == {tmp_path / "root": [Shown(python, True), Shown(env, True)]}


def test_what_lies_in_another_is_seen_with_it(tmp_path: Path) -> None:
    checkout, _ = make(tmp_path, "root/clone", "root/clone/.venv")
    found = veils([checkout / ".venv", checkout], lambda folder: folder != tmp_path / "root")
    assert found == {tmp_path / "root": [Shown(checkout, True)]}


def test_of_a_folder_that_is_closed_itself_the_content_is_shown(tmp_path: Path) -> None:
    source, _ = make(tmp_path, "clone/src", "clone/.venv")
    (tmp_path / "clone" / "README.md").write_text("")
    found = veils([tmp_path / "clone"], lambda folder: folder != tmp_path / "clone")
    shown = [tmp_path / "clone/.venv", tmp_path / "clone/README.md", source]
    assert found == {tmp_path / "clone": [Shown(path, path.is_dir()) for path in shown]}


def test_a_folder_may_be_covered_in_any_case(tmp_path: Path) -> None:
    (inside,) = make(tmp_path, "run/lab")
    assert veils([], lambda folder: True, always=[tmp_path / "run"]) == {tmp_path / "run": []}
    assert veils([inside], lambda folder: True, always=[tmp_path / "run"]) == {tmp_path / "run": [Shown(inside, True)]}


@pytest.mark.parametrize(
    ("mode", "uid", "gid", "enters"),
    [(0o700, 9999, 9999, False), (0o711, 9999, 9999, True), (0o677, os.getuid(), 0, False), (0o701, 9999, 9999, True)],
)
def test_who_may_enter(tmp_path: Path, mode: int, uid: int, gid: int, enters: bool) -> None:
    (folder,) = make(tmp_path, "folder")
    folder.chmod(mode)
    assert may_enter(LabUser("u", uid, gid))(folder) is enters


def test_the_python_that_runs_this_is_needed() -> None:
    needed = needed_folders()
    assert Path(sys.prefix) in needed
    assert any(Path(sys.executable).resolve().is_relative_to(folder) for folder in needed)
