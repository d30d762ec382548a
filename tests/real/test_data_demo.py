"""The demonstration of data, in its short form: the whole chain, and the page it leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_chain_from_data_to_training_to_data(tmp_path: Path) -> None:
    page = tmp_path / "demo.html"
    command = [sys.executable, str(ROOT / "scripts" / "data_demo.py"), "--short", "--out", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert text.count("<figure>") == 6
    assert text.count("succeeded") == 2
    assert "an example, no proof of a gain" in text
    assert text.count('<img src="data:image/png;base64,') == 6 * 2 + 1
    assert 'src="http' not in text
    assert "href" not in text
