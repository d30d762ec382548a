"""node.sh: finds a Python that is new enough, or says what is missing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from podwright.engines.payload import STUB

PROGRAM = "import sys\nprint('pilot', *sys.argv[1:], sys.flags.isolated, sys.flags.no_site)\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job folder whose pilot only says how it was started; its name has a space in it."""
    folder = tmp_path / "a job"
    folder.mkdir()
    (folder / "node.sh").write_text(STUB)
    (folder / "pilot.pyz").write_text(PROGRAM)
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with the tools every system has, and no Python."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("dirname", "hostname", "uname"):
        found = shutil.which(name)
        if found:
            (folder / name).symlink_to(found)
    return folder


def started(job: Path, path: str, **environ: str) -> tuple[int, str, str]:
    command = ["/bin/sh", str(job / "node.sh")]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": path, **environ}, timeout=300)
    return done.returncode, done.stdout, done.stderr


def add(tools: Path, name: str, script: str) -> None:
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)


def happy(job: Path) -> tuple[int, str, str]:
    return 0, f"pilot node {job}/order.json 1 1\n", ""


def test_no_python_at_all_says_what_is_missing(job: Path, tools: Path) -> None:
    host = subprocess.run(["uname", "-n"], capture_output=True, text=True).stdout.strip()
    assert started(job, str(tools)) == (
        69,
        "",
        f"podwright: no Python 3.8 or newer on {host}; tried python3, python3.13 to python3.8\n"
        "hint: install python3, or name one with `python:` of the scheduler in the pod file\n",
    )


def test_an_empty_path_says_so_too(job: Path) -> None:
    code, out, words = started(job, "")
    assert (code, out) == (69, "")
    assert "podwright: no Python 3.8 or newer on " in words


def test_the_configured_python_is_named_when_it_is_missing(job: Path, tools: Path) -> None:
    code, _, words = started(job, str(tools), PODWRIGHT_PYTHON="/opt/none/python3")
    assert code == 69
    assert "; tried /opt/none/python3, python3.13 to python3.8\n" in words


def test_the_configured_python_comes_first(job: Path, tools: Path) -> None:
    add(tools, "python3", "echo wrong; exit 1")
    assert started(job, str(tools), PODWRIGHT_PYTHON=sys.executable) == happy(job)


@pytest.mark.parametrize("broken", ["/bin/false", "/opt/none/python3", "/dev/null"])
def test_a_broken_configured_python_falls_through_to_the_next(job: Path, tools: Path, broken: str) -> None:
    (tools / "python3.11").symlink_to(sys.executable)
    assert started(job, str(tools), PODWRIGHT_PYTHON=broken) == happy(job)


def test_a_python_that_is_too_old_is_passed_over(job: Path, tools: Path) -> None:
    add(tools, "python3", "exit 1")
    add(tools, "python3.13", "exit 1")
    add(tools, "python3.8", f'exec {sys.executable} "$@"')
    assert started(job, str(tools)) == happy(job)
