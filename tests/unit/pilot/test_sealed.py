"""Sealed copies: what the keeper starts pilots from cannot be changed, not even by the user whose they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podwright.pilot.system import sealed
from podwright.pilot.system.sealed import Program, own_program, path_of, seal


def test_nobody_can_write_it() -> None:
    number = seal(b"print('good')\n", "program")
    try:
        path = Path(f"/proc/{os.getpid()}/fd/{number}")
        with pytest.raises(OSError, match=r"Operation not permitted|Permission denied"):
            path.write_bytes(b"print('evil')\n")
        with pytest.raises(OSError, match="Operation not permitted"):
            os.truncate(path, 0)
        assert path.read_bytes() == b"print('good')\n"
    finally:
        os.close(number)


def test_a_child_that_inherits_it_runs_it() -> None:
    number = seal(b"print('good')\n", "program")
    try:
        done = subprocess.run([sys.executable, path_of(number)], pass_fds=[number], capture_output=True, check=True)
        assert done.stdout == b"good\n"
    finally:
        os.close(number)


def test_without_sealed_files_it_has_no_name() -> None:
    """On a C library of before 2018."""
    number = sealed._hide(b"good")
    try:
        assert os.fstat(number).st_nlink == 0
        assert Path(path_of(number)).read_bytes() == b"good"
    finally:
        os.close(number)


def test_others_start_the_pilot_that_runs_here_by_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/proc/self/fd/7", "node"])
    assert own_program() == f"/proc/{os.getpid()}/fd/7"
    monkeypatch.setattr(sys, "argv", ["/run/job/pilot.pyz", "node"])
    assert own_program() == "/run/job/pilot.pyz"


def test_the_program_is_as_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "node.sh").write_text("echo good $0 $1\n")
    (tmp_path / "pilot.pyz").write_bytes(b"good")
    program = Program(str(tmp_path))
    (tmp_path / "node.sh").write_text("echo evil\n")
    (tmp_path / "pilot.pyz").write_bytes(b"evil")
    try:
        done = subprocess.run(program.stub_line("order.json"), capture_output=True, text=True, check=True)
        assert done.stdout == f"good {tmp_path}/node.sh order.json\n"
        assert Path(path_of(program.pilot)).read_bytes() == b"good"
    finally:
        os.close(program.pilot)
