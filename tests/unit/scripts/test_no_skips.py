"""The plugin that makes a skip a failure in continuous integration, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

TESTS = """
import pytest

def test_passes():
    assert True

def test_skips():
    pytest.skip("needs a moon")

@pytest.mark.xfail(strict=True)
def test_fails_as_expected():
    assert False
"""


def run(folder: Path, ci: str, name: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on one file of a folder with the plugin."""
    env = os.environ | {"CI": ci, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.plugins.no_skips", "-p", "no:cacheprovider", name]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed, 1 passed, 1 xfailed"), ("", "1 passed, 1 skipped")])
def test_a_skip_fails_only_in_ci(tmp_path: Path, ci: str, outcome: str) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    done = run(tmp_path, ci, "test_a.py")
    assert outcome in done.stdout
    assert ("which CI does not accept: Skipped: needs a moon" in done.stdout) is (ci == "true")


def test_a_skipped_file_fails_in_ci(tmp_path: Path) -> None:
    (tmp_path / "test_b.py").write_text("import pytest\npytest.importorskip('no_such_module')\n")
    done = run(tmp_path, "true", "test_b.py")
    assert done.returncode != 0
    assert "could not import 'no_such_module'" in done.stdout
