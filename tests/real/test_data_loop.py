"""The whole comparison of choosing against chance: that it comes to its end, judged by the rule of `compare`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.data_loop import sentence
from tests.paths import ROOT

DATA_LOOP = ROOT / "benchmarks" / "results" / "data_loop.md"


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_five_seeds_are_compared_and_the_gain_has_an_interval(tmp_path: Path) -> None:
    page = tmp_path / "loop.md"
    command = [sys.executable, "-m", "scripts.data_loop", "--seeds", "5", "--out", str(page)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert len(re.findall(r"^\| \d \|", text, re.MULTILINE)) == 5
    for what in ("The two weakest classes", "All classes"):
        assert re.search(rf"{what}: \d\.\d{{3}} of the IoU at random, 95 % interval \d\.\d{{3}} to", text)


def test_the_rule_of_compare_judges_the_seeds() -> None:
    """The kept figures: too few to tell. The same difference at every seed is told."""
    pairs = [(0.083, 0.056), (0.154, 0.169), (0.129, 0.161), (0.219, 0.225), (0.176, 0.187)]
    said = sentence("The two weakest classes", pairs)
    assert said in DATA_LOOP.read_text().replace("\n", " ")
    assert ": not proven at a margin of 3%" in said
    assert sentence("All", [(0.0, 0.1), (0.2, 0.2)]) == "All: a score of 0 has no ratio, so nothing is judged."
    better = sentence("All", [(0.1 * seed, 0.11 * seed) for seed in range(1, 6)])
    assert better.endswith("95 % interval 1.100 to 1.100: different.")
