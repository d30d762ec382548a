"""The gate: a slow image among six is named, and a clean history is clean."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path

import pytest

from podwright.analysis.history import slowdowns
from podwright.cli.main import main
from podwright.prove.suite_folder import CellKey, SuiteFolder
from podwright.runs import Home
from tests.fixtures.suites import IMAGES, write_history


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteFolder:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    Home.open(tmp_path / "home")
    return SuiteFolder(tmp_path / "home" / "suites" / "night")


@pytest.mark.parametrize(
    ("factors", "until"),
    [([1, 1, 1.08, 1.08, 1.08, 1.08], None), ([1, 1, 1.08, 1, 1, 1], IMAGES[3])],
    ids=["from the third on", "the third alone"],
)
def test_a_slow_image_planted_third_is_named(
    factors: list[float], until: str | None, folder: SuiteFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    write_history(folder, factors, IMAGES)
    assert main(["bench", "gate", "night", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "slower"
    [finding] = document["findings"]
    assert finding["cell"] == "night/resnet/local/container/2"
    assert (finding["since"], finding["round"], finding["until"]) == (IMAGES[2], 3, until)
    assert finding["ratio"] == pytest.approx(1.08, abs=0.02)
    assert finding["interval"][0] > 1
    assert finding["p"] < 0.01
    assert main(["bench", "gate", "night"]) == 1
    shown = capsys.readouterr().out
    assert f"since     round 3, {IMAGES[2]}" in shown


def test_a_clean_history_ends_with_zero(folder: SuiteFolder, capsys: pytest.CaptureFixture[str]) -> None:
    write_history(folder, [1] * 6, IMAGES)
    assert main(["bench", "gate", "night", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"verdict": "clean", "findings": [], "suite": "night", "rounds": 6}
    assert main(["bench", "gate", "night"]) == 0
    assert "nothing became slower: 2 cells over 6 rounds of night" in capsys.readouterr().out


def test_the_same_image_that_becomes_slow_is_not_blamed(
    folder: SuiteFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    write_history(folder, [1, 1, 1, 1.1], [IMAGES[0]] * 4)
    assert main(["bench", "gate", "night"]) == 1
    assert "look at the machines" in capsys.readouterr().out


def test_one_round_is_no_history(folder: SuiteFolder, capsys: pytest.CaptureFixture[str]) -> None:
    write_history(folder, [1], IMAGES[:1])
    assert main(["bench", "gate", "night"]) == 0
    assert "there is no history yet" in capsys.readouterr().out


def test_chance_is_not_called_slower() -> None:
    """Noise of 5 %, more than the margin: six rounds of four cells, fifteen times."""
    chance = random.Random(9)
    alarms = 0
    for _ in range(15):
        cells = []
        for _ in range(4):
            cells.append([[chance.lognormvariate(4, 0.05) for _ in range(5)] for _ in range(6)])
        alarms += any(slowdowns(rounds, cells=4) for rounds in cells)
    assert alarms <= 2


def test_a_gate_runs_a_round_first(folder: SuiteFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "toy.yaml").write_text("name: toy\ncommand: 'true'\n")
    suite = tmp_path / "suite.yaml"
    suite.write_text("name: night\nworkloads: [toy.yaml]\nrepeats: 1\n")
    for number in (1, 2):
        assert main(["bench", "gate", str(suite), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["rounds"] == number


def test_images_of_one_round_are_a_history_too(folder: SuiteFolder, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(6)
    folder.note("round", round=1, file="suite.yaml")
    for number, image in enumerate(IMAGES):
        for repeat in range(5):
            key = CellKey("resnet", "local", "container", 1, f"registry.example/train:{number}")
            took_s = 60 * chance.lognormvariate(0, 0.01) * (1.08 if number >= 2 else 1)
            run = f"resnet-{number}-{repeat}"
            folder.note("asked", round=1, cell=asdict(key), warmup=False, run=run)
            folder.note("done", run=run, state="succeeded", values={"duration_s": took_s}, version=image)
    assert main(["bench", "gate", "night", "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert finding["since"] == IMAGES[2]
