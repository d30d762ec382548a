"""The whole comparison of choosing against chance: that it comes to its end, and says what came of it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_five_seeds_are_compared_and_the_gain_has_an_interval(tmp_path: Path) -> None:
    page = tmp_path / "loop.md"
    command = [sys.executable, "-m", "scripts.data_loop", "--seeds", "5", "--out", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert len(re.findall(r"^\| \d \|", text, re.MULTILINE)) == 5
    assert re.search(r"The two weakest classes: median gain [+-]\d\.\d{3} IoU, 95 % interval [+-]\d\.\d{3} to", text)
