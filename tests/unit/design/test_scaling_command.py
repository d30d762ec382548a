"""`podwright predict --from`: runs as they lie on disk, what is read of them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.cli.main import main
from tests.fixtures.run_folder import Shape, write_run
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "scaling"
POD = 'name: adas\nnodes:\n  - {hosts: "dgx[001-140]", model: dgx-a100}\n'


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pod's file and a home with two runs of different sizes: 2 nodes, and 4 nodes that are 1.6 times as fast."""
    (tmp_path / "pod.yaml").write_text(POD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    assert main(["ps", "--json"]) == 0
    folder = tmp_path / "home" / "runs"
    for name, nodes, pace in (("small-7f3k", 2, 1.0), ("large-9d2m", 4, 1.6)):
        shape = Shape(run=name, nodes=nodes, pace=pace, retry_at=None, metrics=False, pictures=False)
        write_run(folder / name, shape)
    return folder


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("case", "arguments"),
    [
        ("one-run", ["--from", "small-7f3k", "--gradients", "51MB"]),
        ("two-runs", ["--from", "small-7f3k", "--from", "large-9d2m", "--batch", "64"]),
    ],
)
def test_forecasts(
    case: str, arguments: list[str], golden: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["predict", "pod.yaml", "--nodes", "16", *arguments]) == 0
    printed = capsys.readouterr().out
    golden(CASES / case / "expected" / "forecast.txt", printed)
    assert [line for line in printed.splitlines() if len(line) > 80] == []


@pytest.mark.usefixtures("runs")
def test_json_names_the_run_and_what_it_measured(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["predict", "pod.yaml", "--nodes", "8", "--from", "small-7f3k", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["training"]
    source = told["from"][0]
    assert (source["run"], source["nodes"], source["origin"]) == ("small-7f3k", 2, "measured")
    assert source["step_s"] == pytest.approx(1 / 4.2, rel=0.1)
    assert [row["nodes"] for row in told["nodes"]] == [2, 4, 8]


@pytest.mark.usefixtures("runs")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "gone"], "gone"),
        (["--from", "small-7f3k", "--from", "small-7f3k", "--batch", "64"], "both runs have the same number of ranks"),
        (["--from", "small-7f3k", "--from", "large-9d2m"], "small-7f3k has not reported its batch"),
        (["--from", "small-7f3k"] * 3, "at most two runs can be fitted"),
        (["--from", "small-7f3k", "--gradients", "51"], '"51" has no unit'),
    ],
)
def test_refusals(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["predict", "pod.yaml", "--nodes", "4", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_a_run_without_steps_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(runs / "short-4k2d", Shape(run="short-4k2d", seconds=4, retry_at=None, metrics=False, pictures=False))
    capsys.readouterr()
    assert main(["predict", "pod.yaml", "--nodes", "4", "--from", "short-4k2d"]) == 2
    assert "short-4k2d has not reported two steps" in capsys.readouterr().err
