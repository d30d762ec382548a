"""The code snapshot: what travels, what stays, and that equal content is one digest."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import BinaryIO

import pytest

from podwright.engines import payload
from podwright.engines.code_files import AlsoTravels
from podwright.engines.payload import Snapshot, snapshot
from podwright.pilot.ranks.setup import SetupFailed, extract, unpack
from podwright.spec.problems import Refusal


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def git(folder: Path, *words: str) -> None:
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env=environ)


def tar_of(made: Snapshot) -> bytes:
    made.tar.seek(0)
    return made.tar.read()


def names(made: Snapshot) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(tar_of(made))) as archive:
        return archive.getnames()


def test_in_git_what_is_tracked_or_would_be_added_travels(code: Path) -> None:
    git(code, "init", "-q")
    put(code, "tracked.py", "sub/untracked.py", "ignored.log", "sub/big.bin", ".hidden", "deleted.py")
    (code / ".gitignore").write_text("*.log\n*.bin\n")
    git(code, "add", "tracked.py", "deleted.py", ".gitignore")
    (code / "deleted.py").unlink()
    made = snapshot(code)
    assert names(made) == [".gitignore", ".hidden", "sub/untracked.py", "tracked.py"]
    assert made.files == 4


def test_a_folder_inside_a_repository_travels_alone(code: Path) -> None:
    git(code, "init", "-q")
    put(code, "outside.py", "inner/a.py", "inner/deep/b.py")
    assert names(snapshot(code / "inner")) == ["a.py", "deep/b.py"]


def test_a_folder_that_its_repository_ignores_travels_whole(code: Path) -> None:
    git(code, "init", "-q")
    put(code, "build/a.py", "build/sub/b.py")
    (code / ".gitignore").write_text("build\n")
    assert names(snapshot(code / "build")) == ["a.py", "sub/b.py"]


@pytest.mark.parametrize("in_git", [True, False])
def test_a_python_environment_never_travels(code: Path, in_git: bool) -> None:
    put(
        code,
        "train.py",
        "env/pyvenv.cfg",
        "env/lib/torch.py",
        "deep/venv/pyvenv.cfg",
        "deep/venv/bin/python",
        "deep/b.py",
    )
    if in_git:
        git(code, "init", "-q")
        git(code, "add", "-f", ".")
    assert names(snapshot(code)) == ["deep/b.py", "train.py"]


@pytest.mark.parametrize("in_git", [True, False])
def test_the_home_never_travels(code: Path, in_git: bool) -> None:
    put(code, "train.py", "state/[home]/index.db", "state/[home]/runs/train-1/run.json", "state/h/a.py")
    if in_git:
        git(code, "init", "-q")
    assert names(snapshot(code, AlsoTravels(home=code / "state/[home]"))) == ["state/h/a.py", "train.py"]


def test_a_code_folder_that_is_an_environment_itself_travels(code: Path) -> None:
    put(code, "train.py", "pyvenv.cfg")
    assert names(snapshot(code)) == ["pyvenv.cfg", "train.py"]


def test_what_is_included_travels_although_git_ignores_it(code: Path) -> None:
    git(code, "init", "-q")
    put(code, "train.py", "data/a.bin", "data/deep/b.bin", "data/c.txt", "cache/x/y.bin", "outside.bin")
    (code / ".gitignore").write_text("data\ncache\n*.bin\n")
    travelling = names(snapshot(code, AlsoTravels(patterns=("data/**/*.bin", "cache/x"))))
    assert travelling == [".gitignore", "cache/x/y.bin", "data/a.bin", "data/deep/b.bin", "train.py"]


def test_what_git_tracks_may_still_stay_behind(code: Path) -> None:
    git(code, "init", "-q")
    put(code, "a.py", "docs/x.md")
    (code / ".podwrightignore").write_text("docs/\n")
    git(code, "add", ".")
    assert names(snapshot(code)) == ["a.py"]


def test_without_git_all_but_what_is_ignored_travels(code: Path) -> None:
    put(code, "a.py", "b.log", "data/x.bin", "sub/data/y.bin", "sub/__pycache__/a.pyc", "runs/1/log", "keep/runs.py")
    (code / ".podwrightignore").write_text("# large things\n*.log\n\ndata/\n/runs\n")
    assert names(snapshot(code)) == ["a.py", "keep/runs.py"]


def test_data_inside_the_code_travels_although_it_is_ignored(code: Path) -> None:
    git(code, "init", "-q")
    put(code, "a.py", "data/frames/1.png", "data/frames/deep/2.png", "data/other/3.png", "labels.json")
    (code / ".gitignore").write_text("data\nlabels.json\n")
    made = snapshot(
        code,
        AlsoTravels(
            data=(
                code / "data/frames",
                code / "labels.json",
            )
        ),
    )
    assert names(made) == [".gitignore", "a.py", "data/frames/1.png", "data/frames/deep/2.png", "labels.json"]


def test_equal_content_gives_an_equal_digest(tmp_path: Path) -> None:
    digests = []
    for name in ("one", "two"):
        folder = tmp_path / name
        put(folder, *(["b.py", "a.py"] if name == "one" else ["a.py", "b.py"]))
        os.utime(folder / "a.py", (1, len(name) + ord(name[0])))
        (folder / "b.py").chmod(0o600 if name == "one" else 0o664)
        digests.append(snapshot(folder))
    assert digests[0] == digests[1]
    (tmp_path / "two" / "a.py").write_text("other")
    assert snapshot(tmp_path / "two").sha256 != digests[0].sha256


def test_modes_links_and_odd_names_arrive(code: Path, tmp_path: Path) -> None:
    put(code, "run.sh", "plain.py", "with space.py", "new\nline.py", "sub/ünï.py")
    (code / "run.sh").chmod(0o744)
    (code / "link.py").symlink_to("plain.py")
    (code / "sub" / "up").symlink_to("../plain.py")
    (code / "folder").symlink_to("sub")
    (code / "dangling").symlink_to("nowhere.py")
    (code / "absolute").symlink_to(code / "sub" / "ünï.py")
    made = snapshot(code)
    tar = tmp_path / "code.tar"
    tar.write_bytes(tar_of(made))
    there = tmp_path / "there"
    assert unpack(str(tar), made.sha256, str(there)) == len(tar_of(made))
    for name in ("plain.py", "with space.py", "new\nline.py", "sub/ünï.py"):
        assert (there / name).read_text() == name
    assert [os.access(there / name, os.X_OK) for name in ("run.sh", "plain.py")] == [True, False]
    assert (there / "link.py").readlink() == Path("plain.py")
    assert (there / "sub" / "up").read_text() == "plain.py"
    assert (there / "folder" / "ünï.py").read_text() == "sub/ünï.py"
    assert (there / "dangling").is_symlink()
    assert (there / "absolute").resolve() == there / "sub" / "ünï.py"


def test_a_name_that_is_no_text_arrives(code: Path, tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.py")
    (code / odd).write_text("x")
    for prepare in (lambda: None, lambda: git(code, "init", "-q")):
        prepare()
        made = snapshot(code)
        tar = tmp_path / "code.tar"
        tar.write_bytes(tar_of(made))
        unpack(str(tar), made.sha256, str(tmp_path / "there"))
        assert (tmp_path / "there" / odd).read_text() == "x"


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside.py", "..", "sub/../../outside.py"])
def test_a_link_that_leaves_the_folder_is_refused(code: Path, target: str) -> None:
    put(code, "sub/a.py", "../outside.py")
    (code / "link").symlink_to(target)
    with pytest.raises(Refusal) as caught:
        snapshot(code)
    assert str(caught.value) == f"code: the link {code}/link leaves the code folder\n\nhint: put it in .podwrightignore"


def test_a_link_to_another_folder_of_the_repository_travels_as_its_files(code: Path, tmp_path: Path) -> None:
    put(code, "mine/a.py", "shared/b.py", "shared/deep/c.py", "shared/kept.bin")
    (code / "mine" / "theirs").symlink_to("../shared")
    with pytest.raises(Refusal, match="leaves the code folder"):
        snapshot(code / "mine")
    git(code, "init", "-q")
    (code / ".gitignore").write_text("*.bin\n")
    made = snapshot(code / "mine")
    tar = tmp_path / "code.tar"
    tar.write_bytes(tar_of(made))
    unpack(str(tar), made.sha256, str(tmp_path / "there"))
    arrived = sorted(path.relative_to(tmp_path / "there").as_posix() for path in (tmp_path / "there").rglob("*.*"))
    assert arrived == ["a.py", "theirs/b.py", "theirs/deep/c.py"]
    assert not (tmp_path / "there" / "theirs").is_symlink()


def test_links_in_a_circle_travel_as_they_are(code: Path) -> None:
    (code / "a").symlink_to("b")
    (code / "b").symlink_to("a")
    assert names(snapshot(code)) == ["a", "b"]


def test_what_is_neither_file_nor_link_stays_behind(code: Path) -> None:
    put(code, "a.py")
    os.mkfifo(code / "pipe")
    assert names(snapshot(code)) == ["a.py"]


def test_a_file_that_cannot_be_read_is_said(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(code, "a.py")

    def refuse(path: Path, *_: object, **__: object) -> BinaryIO:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Refusal) as caught:
        snapshot(code)
    assert str(caught.value) == (
        f"code: {code}/a.py cannot be read: permission denied\n\n"
        "hint: put it in .podwrightignore if the run does not need it"
    )


def test_an_empty_folder_is_an_empty_snapshot(code: Path, tmp_path: Path) -> None:
    made = snapshot(code)
    assert (made.files, names(made)) == (0, [])
    tar = tmp_path / "code.tar"
    tar.write_bytes(tar_of(made))
    unpack(str(tar), made.sha256, str(tmp_path / "there"))
    assert list((tmp_path / "there").iterdir()) == []


def test_a_folder_that_is_too_large_is_refused(code: Path) -> None:
    put(code, "large.bin")
    os.truncate(code / "large.bin", payload.LIMIT_BYTES + 1)  # it has a size and no bytes: nobody reads it
    with pytest.raises(Refusal) as caught:
        snapshot(code)
    assert str(caught.value) == (
        f"code: the code folder {code} holds 1.1 GB in 1 files; at most 1 GiB travels\n\n"
        "hint: list what stays behind in .gitignore or .podwrightignore, or give data as an absolute path"
    )


# the other end: setup.unpack


def test_a_damaged_snapshot_is_not_unpacked(tmp_path: Path) -> None:
    tar = tmp_path / "code.tar"
    tar.write_bytes(b"x")
    with pytest.raises(SetupFailed, match=r"code\.tar is damaged: its digest is not the one in the order"):
        unpack(str(tar), "00" * 32, str(tmp_path / "there"))
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil"])
def test_a_member_that_leaves_the_folder_is_not_unpacked(tmp_path: Path, name: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    tar = tmp_path / "code.tar"
    tar.write_bytes(buffer.getvalue())
    with pytest.raises(SetupFailed, match="would be unpacked outside the code folder"):
        unpack(str(tar), hashlib.sha256(buffer.getvalue()).hexdigest(), str(tmp_path / "in" / "there"))
    assert not (tmp_path / "evil").exists()


def test_a_member_that_leaves_for_a_folder_of_a_longer_name_is_not_unpacked(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../there-too/evil"), io.BytesIO(b""))
    buffer.seek(0)
    with (
        tarfile.open(fileobj=buffer) as archive,
        pytest.raises(SetupFailed, match="would be unpacked outside the code folder"),
    ):
        extract(archive, str(tmp_path / "there"))


def test_a_second_copy_of_the_node_finds_the_code_there(code: Path, tmp_path: Path) -> None:
    put(code, "a.py")
    made = snapshot(code)
    tar = tmp_path / "code.tar"
    tar.write_bytes(tar_of(made))
    unpack(str(tar), made.sha256, str(tmp_path / "in" / "there"))
    (tmp_path / "in" / "there" / "made-by-a-rank").write_text("x")
    unpack(str(tar), made.sha256, str(tmp_path / "in" / "there"))
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == ["there"]
    assert (tmp_path / "in" / "there" / "made-by-a-rank").exists()


def test_a_repository_that_git_refuses_is_refused_with_its_words(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git looks at this variable of its own tests as if another user owned the folder."""
    git(code, "init", "-q")
    put(code, "t.py", ".env")
    (code / ".gitignore").write_text(".env\n")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    with pytest.raises(Refusal) as refused:
        snapshot(code)
    [problem] = refused.value.problems
    assert problem.field == "code"
    assert problem.message == f"git refuses the code folder: detected dubious ownership in repository at '{code}'"
    assert problem.hint == f"if you trust it: `git config --global --add safe.directory {code}`"


def test_a_worktree_whose_repository_is_gone_is_refused(code: Path) -> None:
    put(code, "t.py", ".env")
    (code / ".git").write_text("gitdir: /nowhere/at/all\n")
    with pytest.raises(Refusal, match="git refuses the code folder: not a git repository: /nowhere/at/all"):
        snapshot(code)


def test_looking_at_a_repository_runs_no_program_of_its_own(code: Path, tmp_path: Path) -> None:
    git(code, "init", "-q")
    put(code, "t.py")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho run >> {tmp_path}/ran\n")
    program.chmod(0o755)
    git(code, "add", "t.py")
    git(code, "config", "core.fsmonitor", str(program))
    subprocess.run(["git", "-C", str(code), "status"], check=True, capture_output=True)
    assert (tmp_path / "ran").exists(), "git runs it where nobody forbids it"
    (tmp_path / "ran").unlink()
    assert names(snapshot(code)) == ["t.py"]
    assert not (tmp_path / "ran").exists()


def test_a_link_that_steps_out_and_comes_back_leads_to_the_copy(code: Path) -> None:
    put(code, "a.py", "sub/b.py")
    (code / "x").symlink_to("../code/a.py")
    (code / "sub" / "y").symlink_to("../../code/sub/b.py")
    (code / "sub" / "z").symlink_to("../a.py")
    with tarfile.open(fileobj=io.BytesIO(tar_of(snapshot(code)))) as archive:
        links = {member.name: member.linkname for member in archive if member.issym()}
    assert links == {"x": "a.py", "sub/y": "b.py", "sub/z": "../a.py"}


@pytest.mark.parametrize("folder", ["/proc", "/proc/self", "/sys/kernel"])
def test_a_folder_that_the_kernel_makes_up_is_refused(folder: str) -> None:
    """Some files there have no end, and some are gone before they are read."""
    with pytest.raises(Refusal) as caught:
        snapshot(Path(folder))
    assert caught.value.problems[0].message == f"{folder} holds no files: the kernel makes them up as they are read"


def test_no_room_for_a_copy_of_much_code_is_said(code: Path, tmp_path: Path) -> None:
    with (code / "weights.bin").open("wb") as file:
        file.truncate(payload.MEMORY_BYTES + 1)
    with pytest.raises(Refusal, match=f"there is no room for a copy of {code}: no such file or directory"):
        snapshot(code, spool=tmp_path / "nowhere")


def test_code_that_lies_in_the_home_travels_and_the_home_itself_is_none(code: Path) -> None:
    put(code, "train.py", "lib/a.py")
    assert names(snapshot(code, AlsoTravels(home=code.resolve().parent))) == ["lib/a.py", "train.py"]
    with pytest.raises(Refusal, match="is the home of Podwright itself"):
        snapshot(code, AlsoTravels(home=code.resolve()))
