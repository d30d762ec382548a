"""Tests of one group run in one process: only so is a lab started once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT

GROUP = """
import os
from pathlib import Path
import pytest

@pytest.mark.xdist_group("lab")
@pytest.mark.parametrize("number", range(8))
def test_one(number):
    Path(f"{os.environ['PYTEST_XDIST_WORKER']}.{number}").touch()
"""


def test_a_group_stays_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_group.py").write_text(GROUP)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-n", "2", "--dist", "loadgroup", "-q"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    workers = [path.stem for path in tmp_path.glob("gw*.*")]
    assert (len(workers), len(set(workers))) == (8, 1)
