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
SOURCES: dict[str, str | tuple[str, ...]] = {
    **{name: f"mlcommons/training_results_{name}@" for name in ("v2.1", "v3.0", "v3.1")},
    "v5.1": ("developer.nvidia.com/", "vuiseng9/mlperf-t5.1-rundown@"),
}


def score_of(result: PublishedResult) -> float | None:
    return olympic_minutes([(run.minutes, run.reached) for run in result.runs])


def test_all_olympic_means_follow_from_their_runs() -> None:
    with_runs = [result for result in published_results() if result.runs]
    assert len(with_runs) == 195
    assert sum(len(result.runs) for result in with_runs) == 1366
    wrong = [result.source for result in with_runs if abs((score_of(result) or 0) - result.minutes) > 0.0051]
    assert wrong == []


def test_each_later_round_says_where_it_is_from() -> None:
    """What was read from a table and not from logs says so, and claims no spread."""
    tables = [result for result in published_results() if not result.runs]
    assert {result.round for result in tables} == {"v2.1", "v3.0", "v3.1", "v5.1"}
    assert len({(row.round, row.submitter, row.system, row.benchmark) for row in published_results()}) == 249
    for result in tables:
        assert result.source.startswith(SOURCES[result.round])
        assert "its runs were not read" in result.source
        assert (result.spread, result.as_json()["spread"]) == (None, None)
    standing = standing_of([20.0], tables[0])
    assert (standing.is_within_spread, standing.comparison.verdict) == (None, "not proven")


def test_eight_h200(capsys: pytest.CaptureFixture[str]) -> None:
    [result] = select_results("resnet", "h200", "4.0")
    assert (result.minutes, result.chips, len(result.runs)) == (12.03, 8, 5)
    assert main(["bench", "published", "--round", "v3.0", "--benchmark", "bert"]) == 0
    assert "submitter's own table" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("round_name", "system", "benchmark", "chips", "minutes", "runs"),
    [
        ("4.1", "SYS-821GE", "ssd", 8, 36.17, 5),
        ("4.1", "G593-ZD1", "ssd", 8, 33.92, 5),
        ("4.1", "b200_preview", "ssd", 8, 22.51, 5),
        ("5.0", "nyx_n1", "retinanet", 8, 22.06, 5),
        ("5.1", "theia_ngpu8", "llama2_70b_lora", 8, 5.77, 10),
        ("5.1", "theia_ngpu512", "llama31_405b", 512, 64.61, 3),
        ("6.0", "theia-cmh_ngpu512", "llama31_405b", 512, 58.34, 3),
    ],
)
def test_later_rounds_that_were_read_from_their_logs(
    round_name: str, system: str, benchmark: str, chips: int, minutes: float, runs: int
) -> None:
    [result] = select_results(benchmark, system, round_name)
    assert (result.chips, result.minutes, len(result.runs)) == (chips, minutes, runs)
    assert f"training_results_v{round_name}@" in result.source
    assert f"/results/{result.system}/{benchmark} ({runs} logs; olympic mean" in result.source
    low, high = result.spread or (0.0, 0.0)
    assert low < 0 < high


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
    # Eight of them take 115.22 minutes for one result: what `cost compare --work` asks for.
    assert row["results_per_chip_hour"] * 8 * 115.22 / 60 == pytest.approx(1)
    assert {result.results_per_chip_hour for result in published_results() if not result.chips} == {None}
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
