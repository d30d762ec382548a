"""Logs of the programs before MLPerf's own checker; tests/cases/mlperf holds those of real runs to the target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.programs.mlperf import check

LOGS = ROOT / "tests" / "cases" / "mlperf"
Lines = list[str]


def without_end(lines: Lines) -> Lines:
    return [line for line in lines if '"run_stop"' not in line]


def initialised_twice(lines: Lines) -> Lines:
    number = next(number for number, line in enumerate(lines) if '"init_stop"' in line)
    return [*lines[: number + 1], *lines[number:]]


def scored_at_no_epoch(lines: Lines) -> Lines:
    number = max(number for number, line in enumerate(lines) if '"eval_accuracy"' in line)
    cut = lines[number].replace('"epoch_num"', '"epoch"')
    return [*lines[:number], cut, *lines[number + 1 :]]


@pytest.mark.parametrize("log", sorted(LOGS.glob("*.txt")), ids=lambda path: path.stem)
def test_a_log_is_accepted(log: Path, tmp_path: Path) -> None:
    valid, said = check(log.read_text(encoding="utf-8"), tmp_path)
    assert valid, said
    assert "SUCCESS" in said


@pytest.mark.parametrize("spoil", [without_end, initialised_twice, scored_at_no_epoch])
def test_a_spoilt_log_is_not(spoil: Callable[[Lines], Lines], tmp_path: Path) -> None:
    lines = (LOGS / "resnet.txt").read_text(encoding="utf-8").splitlines()
    spoilt = spoil(lines)
    assert spoilt != lines
    valid, said = check("\n".join(spoilt) + "\n", tmp_path)
    assert not valid, said
