"""`bench score`: logs of both rounds, as submitters wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.main import main
from podwright.mlperf.log import entries_of, olympic_minutes, score_run

START_S = 1558570838.588


def line_06(after_s: float, key: str, value: object = None, **metadata: object) -> str:
    body = json.dumps({"value": value, "metadata": {"file": "train.py", "lineno": 610, **metadata}})
    return f":::MLL {START_S + after_s:.3f} {key}: {body}"


def line_07(after_s: float, key: str, value: object = None, **metadata: object) -> str:
    row = {
        "namespace": "",
        "time_ms": round(1000 * (START_S + after_s)),
        "event_type": "POINT_IN_TIME",
        "key": key,
        "value": value,
        "metadata": {"file": "train.py", "lineno": 449, **metadata},
    }
    return f"0: :::MLLOG {json.dumps(row)}"


def log(line: Any, minutes: float, epochs: int, status: str = "success") -> str:
    """A run of blocks of four epochs, each with ten seconds of evaluation behind it, after a minute of starting."""
    lines = ["some words of the program", line(-60, "init_start"), line(-1, "init_stop"), line(0, "run_start")]
    lines.append(line(0, "submission_benchmark", "resnet"))
    for block in range(epochs // 4):
        at = minutes * 60 * block / (epochs // 4)
        lines.append(line(at, "block_start", None, first_epoch_num=4 * block + 1, epoch_count=4))
        lines += [line(at + 20, "eval_start"), line(at + 30, "eval_stop"), line(at + 31, "block_stop")]
    lines.append(line(minutes * 60, "run_stop", None, status=status))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("line", [line_06, line_07])
def test_the_parts_of_a_run(line: Any) -> None:
    run = score_run(entries_of(log(line, 115.2, 60).splitlines()))
    assert run.minutes == pytest.approx(115.2)
    assert run.reached
    assert run.benchmark == "resnet"
    assert run.init_minutes == pytest.approx(1.0)
    assert run.eval_minutes == pytest.approx(15 * 10 / 60)
    assert run.train_minutes == pytest.approx(115.2 - 2.5)
    assert run.epochs == 60
    assert run.minutes_per_epoch == pytest.approx(1.92)


def test_epochs_are_counted_where_they_are_logged() -> None:
    lines = [
        line_07(0, "run_start"),
        *(line_07(number, "epoch_stop") for number in range(1, 8)),
        line_07(60, "run_stop"),
    ]
    run = score_run(entries_of(lines))
    assert (run.epochs, run.reached, run.init_minutes, run.eval_minutes) == (7, True, None, None)


@pytest.mark.parametrize(
    ("runs", "minutes"),
    [
        ([(5.0, True), (1.0, True), (3.0, True)], 3.0),
        ([(5.0, True), (1.0, True), (3.0, True), (4.0, True)], 3.5),
        # It was quick to give up: it is the worst all the same, and the slowest of the others stays.
        ([(0.5, False), (1.0, True), (3.0, True), (4.0, True)], 3.5),
        ([(None, False), (1.0, True), (3.0, True), (4.0, True)], 3.5),
        ([(0.5, False), (0.5, False), (3.0, True), (4.0, True), (4.0, True)], None),
        ([(1.0, True), (2.0, True)], None),
        ([], None),
    ],
)
def test_the_olympic_mean(runs: list[tuple[float | None, bool]], minutes: float | None) -> None:
    assert olympic_minutes(runs) == minutes


def write_logs(folder: Path, *logs: str) -> list[str]:
    paths = [folder / f"result_{number}.txt" for number in range(len(logs))]
    for path, text in zip(paths, logs, strict=True):
        path.write_text(text)
    return list(map(str, paths))


def test_a_set_of_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    times = [(115.2, 60), (108.14, 56), (115.6, 60), (115.3, 60), (115.4, 60)]
    files = write_logs(tmp_path, *(log(line_06, minutes, epochs) for minutes, epochs in times))
    assert main(["bench", "score", *files, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["benchmark"] == "resnet"
    assert document["minutes"] == pytest.approx((115.2 + 115.3 + 115.4) / 3)
    assert [run["epochs"] for run in document["runs"]] == [60, 56, 60, 60, 60]
    assert main(["bench", "score", *files]) == 0
    shown = capsys.readouterr().out
    assert "resnet: 115.30 minutes, best and worst of 5 runs dropped" in shown
    assert "not verified by MLCommons" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_aborted_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = [log(line_07, minutes, 60) for minutes in (70.0, 71.0, 72.0)]
    aborted, cut = log(line_07, 5.0, 4, "aborted"), log(line_07, 5.0, 4).rpartition("0: :::MLLOG")[0]
    files = write_logs(tmp_path, *good, aborted)
    assert main(["bench", "score", *files, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["minutes"] == pytest.approx(71.5)
    files = write_logs(tmp_path, *good, aborted, cut)
    assert main(["bench", "score", *files]) == 1
    assert "2 of 5 runs did not reach the target" in capsys.readouterr().out


def test_files_that_are_no_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hello, other = tmp_path / "hello.txt", tmp_path / "other.txt"
    hello.write_text('hello\n:::MLLOG {broken\n:::MLL 12.0 run_start: [1]\n:::MLLOG {"key": 3}\n')
    assert main(["bench", "score", str(hello)]) == 2
    assert "is no log of MLPerf Training" in capsys.readouterr().err
    assert main(["bench", "score", str(tmp_path / "none.txt")]) == 2
    assert "there is no such file" in capsys.readouterr().err
    assert main(["bench", "score", str(tmp_path)]) == 2
    assert "a folder, no plain file" in capsys.readouterr().err
    files = write_logs(tmp_path, log(line_07, 3.0, 4))
    other.write_text(log(line_07, 3.0, 4).replace('"resnet"', '"ssd"'))
    assert main(["bench", "score", *files, str(other)]) == 2
    assert "these logs are of resnet and ssd" in capsys.readouterr().err
