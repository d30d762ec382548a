"""Published results: all olympic means anew from their runs, and a time of one's own beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.mlperf.log import olympic_minutes
from podwright.mlperf.published import PublishedResult, published_results, select_results, standing_of

DGX_1 = {"resnet": 115.22, "ssd": 22.36, "maskrcnn": 207.48, "gnmt": 20.55, "transformer": 20.34, "minigo": 27.39}
"""What NVIDIA published for one DGX-1 in round 0.6, in minutes."""


def score_of(result: PublishedResult) -> float | None:
    return olympic_minutes([(run.minutes, run.reached) for run in result.runs])


def test_all_olympic_means_follow_from_their_runs() -> None:
    assert len(published_results()) == 187
    assert sum(len(result.runs) for result in published_results()) == 1325
    wrong = [result.source for result in published_results() if abs((score_of(result) or 0) - result.minutes) > 0.0051]
    assert wrong == []


@pytest.mark.parametrize(("benchmark", "minutes"), DGX_1.items())
def test_one_dgx_1(benchmark: str, minutes: float) -> None:
    [result] = select_results(benchmark, "dgx1_ngc", "v0.6")
    assert (result.minutes, result.chips) == (minutes, 8)


@pytest.mark.parametrize(
    ("benchmark", "slower", "within"),
    [
        # The white paper's two ends. +2.29 % was Mask R-CNN, faster, and its published runs differ by more than that.
        ("maskrcnn", -0.0229, True),
        # Which benchmark was 6.13 % slower is not said. SSD always takes 50 epochs, so that it would be the machine;
        # GNMT and Transformer differ by more than that from run to run.
        ("ssd", 0.0613, False),
        ("gnmt", 0.0613, True),
        ("transformer", 0.0613, True),
    ],
)
def test_a_single_time_beside_the_published_spread(benchmark: str, slower: float, within: bool) -> None:
    [result] = select_results(benchmark, "dgx1_ngc", "0.6")
    standing = standing_of([result.minutes * (1 + slower)], result)
    assert standing.slower == pytest.approx(slower)
    assert standing.is_within_spread is within
    assert standing.comparison.verdict == "not proven"


def test_published_runs_differ_in_their_epochs_and_not_in_speed() -> None:
    [resnet] = select_results("resnet", "dgx1_ngc", "0.6")
    assert resnet.spread == (pytest.approx(-0.0615, abs=5e-4), pytest.approx(0.003, abs=5e-4))
    times = sorted(resnet.times)
    # 56 epochs once and 60 four times: an epoch takes equally long, within 0.6 %.
    per_epoch = [times[0] / 56, *(time / 60 for time in times[1:])]
    assert max(per_epoch) / min(per_epoch) - 1 < 0.0065


def test_the_command_lists_and_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "published", "--benchmark", "resnet", "--system", "DGX1_ngc19", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    keys = ("round", "submitter", "system", "chips", "benchmark", "minutes")
    assert [row[key] for key in keys] == ["v0.6", "NVIDIA", "dgx1_ngc19.05_mxnet", 8, "resnet", 115.22]
    assert len(row["runs"]) == 5
    assert row["source"].startswith("mlcommons/training_results_v0.6@f312518:")
    assert main(["bench", "published", "--round", "v0.6"]) == 0
    shown = capsys.readouterr().out
    assert "not verified by MLCommons" in shown
    assert len(shown.splitlines()) == 60 + 4


def test_a_time_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    own = tmp_path / "own.json"
    own.write_text(json.dumps({"samples": [115.22 * 60 * 1.0613]}))
    asked = ["bench", "published", "--benchmark", "resnet", "--system", "dgx1_ngc19", "--beside", str(own)]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "6.13% slower" in shown
    assert "-6.1% +0.3%" in shown
    assert "a single run cannot tell speed from luck" in shown
    assert "not verified by MLCommons" in shown
    assert main([*asked, "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)
    assert row["beside"]["verdict"] == "not proven"
    assert row["beside"]["slower"] == pytest.approx(0.0613)


def test_names_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "published", "--benchmark", "resnt"]) == 2
    assert "did you mean `resnet`?" in capsys.readouterr().err
    assert main(["bench", "published", "--system", "abacus"]) == 2
    assert "nothing published fits 'abacus'" in capsys.readouterr().err
