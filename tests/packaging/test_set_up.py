"""Set-up of a fresh copy: a Python with venv and make are enough, whoever types it.

The copy's lock is cut down to what builds Podwright itself, so that this takes seconds; the rest is the set-up of every
other. `tests/real/test_first_day.py` does the whole of it, by night.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from scripts.release import needed
from tests.fixtures.checkouts import copy_checkout, note_calls
from tests.paths import ROOT

FOREIGN = ("apt", "apt-get", "apt-cache", "dpkg", "sudo", "su", "git")


def cut_lock(lock: Path, names: set[str]) -> None:
    """Leave the pins of these packages alone, with their hashes."""
    pins = re.split(r"\n(?=\w)", lock.read_text())
    lock.write_text("\n".join(pin for pin in pins if pin.partition("==")[0] in names) + "\n")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "podwright"
    copy_checkout(folder)
    cut_lock(folder / "requirements" / "lock.txt", needed("hatchling", "editables"))
    return folder


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """What was called of the programs that set-up has to do without."""
    note_calls(tmp_path / "bin", FOREIGN, str(tmp_path / "called"))
    return tmp_path / "called"


def attempt(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    # What runs the tests tells its children of itself: a make in a make, an environment.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "VIRTUAL_ENV"))}
    env |= {"PATH": f"{copy.parent / 'bin'}:{env['PATH']}", "PYTHONPATH": ""}
    return subprocess.run(
        ["make", *words], cwd=copy, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def make(copy: Path, *words: str) -> str:
    done = attempt(copy, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_set_up_calls_neither_apt_nor_sudo_nor_git(copy: Path, log: Path) -> None:
    assert "ready     .venv/bin/podwright   (set up in" in make(copy, "setup")
    assert (copy / ".venv" / "bin" / "podwright").exists()
    assert make(copy, "setup") == "ready     .venv/bin/podwright\n", "a second time there is nothing to do"
    assert make(copy, "ready") == ""
    assert not log.exists(), log.read_text()


def test_what_set_up_for_tests_calls_would_be_seen(copy: Path, log: Path) -> None:
    (copy / "scripts" / "apt-packages.txt").write_text("none no-such-program for this test\n")
    attempt(copy, "machine")
    first = log.read_text().splitlines()[0]
    assert first in ("apt-get update -qq", "sudo -n true"), "root asks apt, others whether they may be root"


@pytest.mark.parametrize("verb", ["demo", "data-demo"])
def test_the_demonstrations_do_this_set_up_and_no_other(verb: str) -> None:
    lines = make(ROOT, "--dry-run", verb).splitlines()
    assert [line.rpartition("; ")[2] for line in lines] == [
        '"$found" scripts/setup.py --quiet',
        f".venv/bin/python scripts/{verb.replace('-', '_')}.py",
    ]
