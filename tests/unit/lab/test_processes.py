"""A process is known by pid and start time: another one with the same pid is never taken for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab import processes


@pytest.fixture
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_mark_names_a_living_process(tmp_path: Path, sleeping: subprocess.Popen[bytes]) -> None:
    mark = tmp_path / "mark"
    mark.write_text(f"{sleeping.pid} {processes.born(sleeping.pid)}\n")
    assert processes.marked(mark) == sleeping.pid
    processes.kill(sleeping.pid)
    assert processes.until(lambda: processes.marked(mark) is None)


@pytest.mark.parametrize("text", ["", "x y", "12", "{pid} 1"])
def test_any_other_mark_names_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "mark").write_text(text.format(pid=os.getpid()))
    assert processes.marked(tmp_path / "mark") is None


def test_what_runs_beside_a_process_is_found_by_name(sleeping: subprocess.Popen[bytes]) -> None:
    def beside() -> dict[str, list[int]]:
        return processes.running([os.getpid()])[os.getpid()]

    assert processes.until(lambda: sleeping.pid in beside().get("sleep", []))
    assert any(os.getpid() in pids for pids in beside().values())


def test_nothing_runs_beside_one_that_has_ended() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert processes.running([process.pid]) == {}


def test_ending_twice_is_no_error(sleeping: subprocess.Popen[bytes]) -> None:
    processes.kill(sleeping.pid)
    sleeping.wait()
    processes.kill(sleeping.pid)
    assert processes.born(sleeping.pid) is None


def test_waiting_ends_when_time_is_up() -> None:
    assert not processes.until(lambda: False, 0.01, every_s=0.001)
