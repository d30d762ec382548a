"""The guard of a lab: it ends the lab with the process that asked for it, and goes when the lab has gone before."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab import processes, watch
from podwright.spec.problems import Refusal
from tests.real.clients import PATIENCE_S


@pytest.fixture
def asker() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "86400"]) as process:
        yield process
        process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "lab"
    made.mkdir()
    return made


def guard_of(folder: Path) -> int:
    pid = processes.marked(folder / "guard")
    assert pid is not None
    return pid


def ends(pid: int) -> bool:
    return processes.until(lambda: processes.born(pid) is None, PATIENCE_S)


def test_the_lab_ends_with_the_process_that_asked_for_it(
    asker: subprocess.Popen[bytes], folder: Path, tmp_path: Path
) -> None:
    watch.start(folder, asker.pid, ["touch", str(tmp_path / "given back")])
    guard = guard_of(folder)
    assert not (tmp_path / "given back").exists()
    asker.kill()
    assert ends(guard)
    assert not folder.exists()
    assert (tmp_path / "given back").exists()


def test_a_lab_has_one_guard(asker: subprocess.Popen[bytes], folder: Path) -> None:
    watch.start(folder, asker.pid)
    guard = guard_of(folder)
    watch.start(folder, asker.pid)
    assert guard_of(folder) == guard
    asker.kill()
    assert ends(guard)


def test_a_guard_goes_with_its_lab(asker: subprocess.Popen[bytes], folder: Path, tmp_path: Path) -> None:
    watch.start(folder, asker.pid, ["touch", str(tmp_path / "given back")])
    guard = guard_of(folder)
    (folder / "guard").unlink()
    folder.rmdir()
    assert ends(guard)
    assert asker.poll() is None
    assert not (tmp_path / "given back").exists()


def test_a_process_that_has_ended_is_refused(asker: subprocess.Popen[bytes], folder: Path) -> None:
    asker.kill()
    asker.wait()
    with pytest.raises(Refusal, match=f"the lab shall end with process {asker.pid}, which has ended already"):
        watch.start(folder, asker.pid)
