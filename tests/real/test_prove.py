"""Proof on real runs: bare against container against Slurm with its report, scaling over nodes, a planted slowdown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.prove.suite_folder import SuiteFolder
from tests.paths import ROOT
from tests.real.labs import lab_folder

STEP = """\
import json, sys, time
for step in range(30):
    began = time.monotonic()
    time.sleep(float(sys.argv[1]))
    print(json.dumps({"podwright": {"step": step, "compute_s": time.monotonic() - began}}), flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, which the cluster's user can see."""
    with lab_folder() as folder:
        yield folder


def run_script(folder: Path, *command: str) -> str:
    environment = os.environ | {"PODWRIGHT_HOME": str(folder / "home")}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def check_demo(folder: Path, repeats: int, samples: int) -> str:
    """Runs the demonstration and gives its report."""
    asked = ["--repeats", str(repeats), "--samples", str(samples), "--out", str(folder / "out"), "--lab", "lab-proof"]
    run_script(folder, "-m", "scripts.prove_demo", *asked, "--table", str(folder / "table.md"))
    cells = SuiteFolder(folder / "home" / "suites" / "prove").cells()
    assert [cell.key.name for cell in cells] == [
        "digits/local/bare/1",
        "digits/local/container/1",
        "digits/lab-proof/bare/1",
    ]
    assert {len(cell.values("duration_s")) for cell in cells} == {repeats}
    order = [trial.key.name for trial in SuiteFolder(folder / "home" / "suites" / "prove").trials()]
    there = [cell.key.name for cell in cells]
    turns = [there if turn % 2 == 0 else there[::-1] for turn in range(repeats)]
    assert order == sum(turns, there), "they take turns to and fro, after a warm-up each"
    page = (folder / "out" / "report.html").read_text()
    assert page.count('class="strip-dot"') == 3 * repeats
    assert page.count('class="strip-bar"') == 3
    for text in ("By runtime", "By target", "CPU cores in use", "Cost a run", " USD"):
        assert text in page
    return (folder / "table.md").read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("images")
def test_bare_against_container_against_slurm(folder: Path) -> None:
    """The short form: two runs of each prove nothing, and the report says so."""
    table = check_demo(folder, repeats=2, samples=1000)
    assert table.count("\n| ") == 4
    assert "| digits/local/container/1 | 2 |" in table


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.xdist_group("images")
@pytest.mark.parametrize("repeats", [5, 12])
def test_the_same_often_enough_to_decide(folder: Path, repeats: int) -> None:
    table = check_demo(folder, repeats=repeats, samples=4000)
    assert table.count("same") + table.count("different") + table.count("not proven") >= 2


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_scaling_over_nodes(folder: Path) -> None:
    run_script(folder, "benchmarks/lab_scaling.py", "--repeats", "3", "--out", str(folder))
    curves = json.loads((folder / "lab_scaling.json").read_text())["curves"]
    assert [(curve["workload"], curve["kind"]) for curve in curves] == [
        ("allreduce", "weak"),
        ("segmentation", "strong"),
    ]
    for curve in curves:
        assert [(size["size"], size["n"]) for size in curve["sizes"]] == [(1, 3), (2, 3), (4, 3)]
        for size in curve["sizes"][1:]:
            low, high = size["efficiency_interval"]
            assert low <= size["efficiency"] <= high
            assert size["predicted_s"]["low"] <= size["predicted_s"]["expected"] <= size["predicted_s"]["high"]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_planted_slowdown_is_found_live_with_its_cause(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 6.4 s a run takes 0.33 s longer, in its steps: found, and where the time went is said."""
    monkeypatch.setenv("PODWRIGHT_HOME", str(folder / "home"))
    work = folder / "work"
    work.mkdir()
    (work / "step.py").write_text(STEP)
    for name, seconds in (("before", 0.2), ("after", 0.211)):
        text = f"name: {name}\ncode: .\ncommand: {sys.executable} step.py {seconds}\n"
        (work / f"{name}.yaml").write_text(text)
    (work / "suite.yaml").write_text("name: planted\nworkloads: [before.yaml, after.yaml]\nrepeats: 12\n")
    assert main(["bench", "run", str(work / "suite.yaml")]) == 0
    capsys.readouterr()
    assert main(["compare", "planted/before", "planted/after", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "different"
    assert document["causes"][0]["what"] == "compute_s"
    assert document["steps"][1]["b"] - document["steps"][1]["a"] == pytest.approx(0.33, abs=0.1)
