"""The gate: four verdicts, none of which comes by accident."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.main import main
from podwright.prove.suite_folder import CellKey, SuiteFolder
from podwright.runs import Home
from tests.fixtures.suites import CELLS, IMAGES, write_history

Gate = Callable[..., tuple[int, dict[str, Any]]]
CELL = "night/resnet/local/container/2"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SuiteFolder:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    Home.open(tmp_path / "home")
    return SuiteFolder(tmp_path / "home" / "suites" / "night")


@pytest.fixture
def gate(capsys: pytest.CaptureFixture[str]) -> Gate:
    def ask(*options: str) -> tuple[int, dict[str, Any]]:
        code = main(["bench", "gate", "night", "--json", *options])
        return code, json.loads(capsys.readouterr().out)

    return ask


def add_round(folder: SuiteFolder, samples: list[float], state: str = "succeeded", **more: Any) -> None:
    """One cell's runs in a new round of a suite that repeats it as often."""
    number, cell = folder.round() + 1, asdict(CELLS[0])
    metric = more.pop("metric", "duration_s")
    due = more.pop("due", len(samples))
    folder.note("round", round=number, file="suite.yaml", repeats=due, cells=[cell])
    for index, value in enumerate(samples):
        run = f"toy-{number}-{index}"
        folder.note("asked", round=number, cell=cell, warmup=False, run=run)
        folder.note("done", run=run, state=state, values={metric: value} if state == "succeeded" else {}, **more)


def near(value: float, count: int, spread: float = 0.005) -> list[float]:
    chance = random.Random(f"{value} {count}")
    return [value * chance.lognormvariate(0, spread) for _ in range(count)]


def test_a_round_that_fails_is_broken_and_not_clean(folder: SuiteFolder, gate: Gate) -> None:
    for _ in range(2):
        add_round(folder, near(60, 4))
    add_round(folder, [0.0] * 4, state="failed")
    code, document = gate()
    assert (code, document["verdict"]) == (1, "broken")
    assert document["broken"] == [{"cell": CELLS[0].name, "state": "failed", "count": 4}]


def test_a_suite_that_never_succeeded_is_broken(folder: SuiteFolder, gate: Gate) -> None:
    add_round(folder, [0.0] * 2, state="failed")
    assert gate()[1]["verdict"] == "broken"


@pytest.mark.parametrize(
    ("more", "state", "count"),
    [({"due": 5}, "missing", 1), ({"reached": False}, "missed its goal", 4)],
    ids=["fewer runs than were asked for", "no goal"],
)
def test_what_did_not_do_its_work_is_broken(
    more: dict[str, Any], state: str, count: int, folder: SuiteFolder, gate: Gate
) -> None:
    add_round(folder, near(60, 8))
    add_round(folder, near(60, 4), **more)
    code, document = gate("--allow", "not-proven")
    assert (code, document["verdict"]) == (1, "broken")
    assert [(row["state"], row["count"]) for row in document["broken"]] == [(state, count)]


def test_a_cell_that_is_gone_is_missing_unless_the_suite_has_it_no_more(folder: SuiteFolder, gate: Gate) -> None:
    write_history(folder, [1, 1], IMAGES[:2])
    folder.note("round", round=3, file="suite.yaml", repeats=5, cells=[asdict(key) for key in CELLS])
    assert {(row["state"], row["count"]) for row in gate()[1]["broken"]} == {("missing", 5)}
    add_round(folder, near(60, 5))
    code, document = gate()
    assert (code, document["verdict"], document["broken"]) == (0, "clean", [])


def test_a_failure_that_was_made_good_is_none(folder: SuiteFolder, gate: Gate) -> None:
    add_round(folder, near(60, 8))
    add_round(folder, near(60, 8))
    folder.note("asked", round=2, cell=asdict(CELLS[0]), warmup=False, run="toy-bad")
    folder.note("done", run="toy-bad", state="failed", values={})
    assert gate()[1]["verdict"] == "clean"


@pytest.mark.parametrize(("factor", "verdict"), [(2.0, "clean"), (0.25, "slower"), (1.0, "clean")])
def test_of_throughput_more_is_better(factor: float, verdict: str, folder: SuiteFolder, gate: Gate) -> None:
    add_round(folder, near(400, 8), metric="samples_per_s")
    add_round(folder, near(400 * factor, 8), metric="samples_per_s")
    code, document = gate("--metric", "samples_per_s")
    assert (document["verdict"], document["direction"], code) == (verdict, "higher", int(verdict != "clean"))


def test_a_metric_that_does_not_say_which_way_is_good_is_asked_for(
    folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        add_round(folder, near(7, 8), metric="wibble")
    assert main(["bench", "gate", "night", "--metric", "wibble"]) == 2
    assert "hint: say which: `--better higher` or `--better lower`" in capsys.readouterr().err
    assert gate("--metric", "wibble", "--better", "higher")[1]["direction"] == "higher"


def test_three_times_slower_at_too_few_repeats_is_not_clean(
    folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    add_round(folder, near(0.2, 3))
    add_round(folder, near(0.6, 3))
    code, document = gate()
    assert (code, document["verdict"], document["smallest_seen"]) == (1, "not proven", None)
    assert document["needed"] > 3
    assert gate("--allow", "not-proven")[0] == 0
    assert main(["bench", "gate", "night"]) == 1
    shown = capsys.readouterr().out
    assert "not proven" in shown
    assert f"{document['needed']} repeats" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_first_round_proves_nothing(folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    write_history(folder, [1], IMAGES[:1])
    code, document = gate()
    assert (code, document["verdict"]) == (1, "not proven")
    main(["bench", "gate", "night"])
    assert "a first round has nothing to be held against" in capsys.readouterr().out


def test_a_slow_image_planted_third_is_named(
    folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    write_history(folder, [1, 1, 1.08, 1.08, 1.08, 1.08], IMAGES)
    code, document = gate()
    [finding] = document["findings"]
    assert (code, document["verdict"], finding["cell"]) == (1, "slower", CELL)
    assert (finding["since"], finding["round"], finding["rounds"]) == (IMAGES[2], 3, [3, 3])
    assert finding["ratio"] == pytest.approx(1.08, abs=0.02)
    assert finding["interval"][0] > 1
    assert finding["p"] < 0.01
    assert main(["bench", "gate", "night"]) == 1
    assert f"since     round 3, {IMAGES[2]}" in capsys.readouterr().out


def test_what_is_good_again_is_clean(folder: SuiteFolder, gate: Gate) -> None:
    write_history(folder, [1, 1, 1.08, 1, 1, 1], IMAGES)
    assert gate()[1]["verdict"] == "clean"


@pytest.mark.parametrize("slow", [1, 3, 6, 12])
def test_a_regression_that_stays_is_reported_until_it_is_accepted(
    slow: int, folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    for factor in [1.0] * 3 + [1.1] * slow:
        add_round(folder, near(60 * factor, 5))
    [finding] = gate()[1]["findings"]
    assert finding["round"] == 4
    assert main(["bench", "accept", "night", "resnet", "--reason", "a larger model"]) == 0
    assert "accepted  resnet/local/container/1 from round 4 on: a larger model" in capsys.readouterr().out
    document = gate()[1]
    assert document["findings"] == []
    assert document["accepted"] == [{"cell": CELLS[0].name, "round": 4, "reason": "a larger model"}]
    add_round(folder, near(66, 5))
    add_round(folder, near(66 * 1.1, 8))
    [finding] = gate()[1]["findings"]
    assert finding["round"] == 3 + slow + 2


def test_what_is_accepted_is_the_newest_level_wherever_it_began(
    folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a change that may have come in any of several rounds, those before the last may still be of the old level."""
    chance = random.Random(3978)
    for value in (60, 60, 60, 84):
        add_round(folder, [value * chance.lognormvariate(0, 0.12) for _ in range(5)])
    [finding] = gate()[1]["findings"]
    assert (finding["round"], finding["rounds"]) == (2, [2, 4])
    assert main(["bench", "accept", "night", "resnet", "--reason", "a larger model"]) == 0
    assert "from round 4 on" in capsys.readouterr().out
    document = gate()[1]
    assert document["findings"] == []
    assert document["accepted"] == [{"cell": CELLS[0].name, "round": 4, "reason": "a larger model"}]


def test_a_pinned_baseline(folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]) -> None:
    for count, value in ((5, 60), (3, 66), (5, 66), (5, 66)):
        add_round(folder, near(value, count))
    code, document = gate("--baseline", "1")
    assert (code, document["verdict"], document["baseline"]) == (1, "slower", [1])
    assert gate("--baseline", "2,3")[1]["verdict"] == "clean"
    assert main(["bench", "gate", "night", "--baseline", "2"]) == 2
    assert "has 3 samples of duration_s in round 2" in capsys.readouterr().err
    assert main(["bench", "gate", "night", "--baseline", "two"]) == 2


def test_the_same_image_that_becomes_slow_is_not_blamed(
    folder: SuiteFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    write_history(folder, [1, 1, 1, 1.1], [IMAGES[0]] * 4)
    assert main(["bench", "gate", "night"]) == 1
    assert "look at the machines" in capsys.readouterr().out


def test_a_metric_that_no_run_told_is_refused(
    folder: SuiteFolder, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        add_round(folder, near(60, 5))
    assert main(["bench", "gate", "night", "--metric", "sample_per_s", "--better", "higher"]) == 2
    said = capsys.readouterr().err
    assert "--metric: no run of night told sample_per_s" in said
    assert "hint: they told duration_s" in said


@pytest.mark.parametrize(
    ("kind", "name"),
    [("code", "snapshot"), ("environment", "image digest"), ("environment", "torch"), ("data", "frames")],
)
def test_a_cell_of_two_kinds_is_refused(
    kind: str, name: str, folder: SuiteFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """A suite that one client ran in the morning and another in the evening, after an edit, a push or an upgrade."""
    add_round(folder, near(60, 5))
    add_round(folder, near(60, 2), due=4, settings=[[kind, name, "aaaa"]], commit="1")
    for run in ("x", "y"):
        folder.note("asked", round=2, cell=asdict(CELLS[0]), warmup=False, run=run)
        folder.note(
            "done", run=run, state="succeeded", values={"duration_s": 60}, settings=[[kind, name, "2"]], commit="2"
        )
    for command in (["bench", "gate", "night"], ["compare", "night@1/resnet", "night@2/resnet"]):
        assert main(command) == 2
        said = capsys.readouterr().err
        assert f"mixes {kind} {name}: aaaa and 2" in said
        assert "podwright bench run SUITE --again" in said
    [cell] = folder.cells()
    assert cell.as_json()["mixed"] == [{"kind": kind, "name": name, "a": "aaaa", "b": "2"}]


def test_a_kernel_or_a_strange_line_makes_no_cell_mixed(folder: SuiteFolder, gate: Gate) -> None:
    add_round(folder, near(60, 4), settings=[["environment", "kernel", "6.1"], ["moon", "phase", "full"], "torn"])
    [cell] = folder.cells()
    cell.check_pure()
    assert cell.trials[0].settings == {("environment", "kernel"): "6.1"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until", "proven"], "write `--until proven --budget 20runs`"),
        (["--budget", "20runs"], "write `--until proven --budget 20runs`"),
        (["--until", "proven", "--budget", "20runs"], "name the suite's file"),
    ],
)
def test_options_that_make_no_sense(
    options: list[str], message: str, folder: SuiteFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    add_round(folder, near(60, 5))
    assert main(["bench", "gate", "night", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_gate_runs_a_round_first(
    folder: SuiteFolder, tmp_path: Path, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy.yaml").write_text("name: toy\ncommand: 'true'\n")
    suite = tmp_path / "suite.yaml"
    suite.write_text("name: night\nworkloads: [toy.yaml]\nrepeats: 1\n")
    for number in (1, 2):
        assert main(["bench", "gate", str(suite), "--json", "--allow", "not-proven"]) == 0
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


def test_more_is_run_within_the_budget_and_money_without_prices_is_refused(
    folder: SuiteFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toy.yaml").write_text("name: toy\ncommand: 'true'\n")
    suite = tmp_path / "suite.yaml"
    suite.write_text("name: night\nworkloads: [toy.yaml]\nrepeats: 1\n")
    prove = ["bench", "gate", str(suite), "--until", "proven", "--json", "--allow", "not-proven"]
    assert main([*prove, "--budget", "2runs"]) == 0
    assert len(folder.trials()) == 1, "a first round has nothing to be held against"
    capsys.readouterr()
    assert main([*prove, "--budget", "2runs"]) == 0
    seen = capsys.readouterr()
    assert len(folder.trials()) == 4, "the round, and two more"
    assert "price     up to 4 more runs" in seen.err
    assert main([*prove, "--budget", "50EUR"]) == 2
    assert "these runs have no price" in capsys.readouterr().out
    assert len(folder.trials()) == 4
    assert main([*prove, "--budget", "soon"]) == 2
