"""What ranks leave in the folder they started in: found, kept within bounds, and the rest is told."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.life import workdir
from podwright.pilot.life.workdir import LATE_S, NAMED, Keeping


class Work:
    """A folder that ranks start in, what is kept of it, and the time that passes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder / "n0" / "code", folder / "results" / "workdir"
        self.folder.mkdir(parents=True)
        self.now = 0.0
        self.write("train.py", "train")
        self.write("configs/small.yaml", "lr: 1")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def keeping(self, patterns: Iterable[str] = (), **bounds: Any) -> Keeping:
        limits = bounds.get("limit_bytes", 1 << 20), bounds.get("limit_s", 60.0)
        keeping = Keeping(str(self.folder), str(self.kept), list(patterns), limits, lambda: self.now)
        keeping.note()
        return keeping

    def end(self, keeping: Keeping) -> dict[str, Any]:
        """All ranks ended: wait until it is kept."""
        keeping.start()
        keeping._thread.join(60.0)
        assert keeping.is_over
        return keeping.facts()

    def names(self) -> list[str]:
        paths = (path for path in self.kept.rglob("*") if path.is_symlink() or path.is_file())
        return sorted(path.relative_to(self.kept).as_posix() for path in paths)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def test_what_is_new_or_changed_is_moved_and_the_rest_stays(work: Work) -> None:
    keeping = work.keeping()
    inode = work.write("out/ckpt.pt", "weights").stat().st_ino
    work.write("configs/small.yaml", "lr: 2")
    facts = work.end(keeping)
    assert (facts["files"], facts["bytes"], facts["left_count"]) == (2, 12, 0)
    assert work.names() == ["configs/small.yaml", "out/ckpt.pt"]
    assert (work.kept / "out" / "ckpt.pt").stat().st_ino == inode
    assert (work.folder / "train.py").exists()


def test_a_folder_that_nobody_touched_leaves_no_trace(work: Work) -> None:
    assert work.end(work.keeping()) == {}
    assert not work.kept.exists()


def test_a_pilot_that_replaces_a_lost_one_knows_what_was_there_before_the_first(work: Work) -> None:
    work.keeping()
    work.write("out/ckpt.pt", "of the first attempt")
    assert work.end(work.keeping())["files"] == 1


def test_another_file_system_gets_copies(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for a second file system: a test cannot count on one."""
    rename, moves = os.rename, []

    def across(source: str, target: str) -> None:
        if Path(source).parent == Path(target).parent:
            rename(source, target)
        else:
            moves.append(source)
            raise OSError(workdir.errno.EXDEV, "Invalid cross-device link")

    keeping = work.keeping()
    path = work.write("out/tool", "weights")
    path.chmod(0o750)
    os.utime(path, (1000, 2000))
    monkeypatch.setattr(workdir.os, "rename", across)
    assert work.end(keeping)["files"] == len(moves) == 1
    copy = (work.kept / "out" / "tool").stat()
    assert (copy.st_mode & 0o777, copy.st_mtime, path.exists()) == (0o750, 2000.0, True)
    assert work.names() == ["out/tool"]


@pytest.mark.parametrize(
    ("patterns", "kept"),
    [
        (["out/**"], ["out/a/b.pt", "out/ckpt.pt"]),
        (["out"], ["out/a/b.pt", "out/ckpt.pt"]),
        (["*.pt"], ["out/a/b.pt", "out/ckpt.pt", "x.pt"]),
        (["/x.pt", "log-?.txt"], ["log-1.txt", "x.pt"]),
        (["none"], []),
    ],
)
def test_patterns_choose(work: Work, patterns: list[str], kept: list[str]) -> None:
    keeping = work.keeping(patterns)
    for name in ("out/ckpt.pt", "out/a/b.pt", "x.pt", "log-1.txt"):
        work.write(name, "x")
    facts = work.end(keeping)
    assert work.names() == kept
    assert facts.get("left_count", 0) == 0


def test_caches_and_compiled_files_are_nobodys_work(work: Work) -> None:
    keeping = work.keeping()
    for name in ("__pycache__/a.pyc", ".git/HEAD", ".pytest_cache/v", ".cache/x", "a/__pycache__/b", "c.pyc"):
        work.write(name, "x")
    work.write("hub/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55")
    work.write("hub/models/large", "x")
    work.write("venv/pyvenv.cfg", "home = /usr/bin")
    work.write("venv/bin/activate", "x")
    assert work.end(keeping) == {}


def test_what_is_no_plain_file_is_told(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    keeping = work.keeping()
    os.mkfifo(work.folder / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(work.folder)  # a socket's path is short
    listener.bind("socket")
    listener.close()
    facts = work.end(keeping)
    assert facts["left"] == [
        {"path": "pipe", "why": "a pipe, no plain file"},
        {"path": "socket", "why": "a socket, no plain file"},
    ]
    assert facts["files"] == 0


def test_links_lead_to_what_is_kept_or_stay_behind(work: Work) -> None:
    keeping = work.keeping()
    work.write("out/step-9.pt", "weights")
    (work.folder / "out" / "last").symlink_to(work.folder / "out" / "step-9.pt")
    (work.folder / "best").symlink_to("out")
    (work.folder / "code").symlink_to("train.py")
    (work.folder / "home").symlink_to("/etc")
    facts = work.end(keeping)
    assert work.names() == ["best", "out/last", "out/step-9.pt"]
    assert (work.kept / "out" / "last").readlink() == Path("step-9.pt")
    assert (work.kept / "best" / "step-9.pt").read_text() == "weights"
    assert facts["left"] == [
        {"path": "code", "why": "a link to what is not kept"},
        {"path": "home", "why": "a link that leads out of the folder"},
    ]


def test_what_would_be_too_much_is_left_out_and_smaller_files_are_not(work: Work) -> None:
    keeping = work.keeping(limit_bytes=10)
    for name, size in (("a", 4), ("b", 7), ("c", 6)):
        work.write(name, "x" * size)
    facts = work.end(keeping)
    assert (work.names(), facts["bytes"]) == (["a", "c"], 10)
    assert facts["left"] == [{"path": "b", "why": "its 1 MiB would make it more than 1 MiB in all"}]


def test_of_many_the_first_are_named_and_all_are_counted(work: Work) -> None:
    keeping = work.keeping(limit_bytes=0)
    for number in range(NAMED + 5):
        work.write(f"f{number:02}", "x")
    facts = work.end(keeping)
    assert (len(facts["left"]), facts["left_count"]) == (NAMED, NAMED + 5)


def test_a_name_that_is_no_text_is_kept_and_can_be_told(work: Work) -> None:
    keeping = work.keeping(limit_bytes=1)
    for name in (b"a\xff", b"b\xff"):
        Path(os.fsdecode(os.fsencode(work.folder) + b"/" + name)).write_text("x")
    facts = work.end(keeping)
    assert (facts["files"], [row["path"] for row in facts["left"]]) == (1, ["b\\xff"])


@pytest.mark.parametrize("text", ["", "[1]", '{"a": 1}', "{" * 100_000, "\0"])
def test_a_list_that_a_rank_wrote_over_keeps_nothing_and_breaks_nothing(work: Work, text: str) -> None:
    keeping = work.keeping()
    work.write("out", "x")
    Path(f"{work.folder}.list").write_text(text)
    facts = work.end(keeping)
    assert (facts["files"], facts["left"]) == (
        0,
        [{"path": ".", "why": "what lay there before the ranks is not known"}],
    )


def test_the_time_is_over(work: Work) -> None:
    keeping = work.keeping(limit_s=60.0)
    work.write("out", "x")
    clock = iter([0.0, 61.0])
    keeping._monotonic = lambda: next(clock, 61.0)
    facts = work.end(keeping)
    assert facts["files"] == 0
    assert facts["left"] == [{"path": "out", "why": "60 s were over, and what comes after it was not looked at"}]


def waits(work: Work, keeping: Keeping) -> Callable[[], None]:
    """Let the copy of one file wait for a pipe, as for a disk that does not answer; gives what ends that."""
    read, write = os.pipe()
    keeping._move = lambda leaving, target: os.read(read, 1)  # type: ignore[method-assign,assignment,return-value]
    work.write("out", "x")
    keeping.start()
    return lambda: os.close(write)


def test_who_wants_the_end_need_not_wait_for_it(work: Work) -> None:
    keeping = work.keeping()
    let_go = waits(work, keeping)
    assert not keeping.is_over
    keeping.stop("stopped by SIGTERM")
    assert keeping.is_over
    let_go()
    keeping._thread.join(60.0)


def test_a_disk_that_does_not_answer_is_not_waited_for(work: Work) -> None:
    keeping = work.keeping(limit_s=60.0)
    let_go = waits(work, keeping)
    work.now = 60.0 + LATE_S + 1
    assert keeping.is_over
    let_go()
    keeping._thread.join(60.0)


def test_a_run_without_a_place_for_it_keeps_nothing(work: Work) -> None:
    keeping = Keeping(str(work.folder), str(work.kept), None)
    keeping.note()
    work.write("out", "x")
    keeping.start()
    assert (keeping.is_over, keeping.facts(), work.kept.exists()) == (True, {}, False)
    assert not Path(f"{work.folder}.list").exists()
