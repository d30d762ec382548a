"""The statistics and the table that every benchmark shares."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from benchmarks import measure
from benchmarks.measure import Estimate, Row
from tests.paths import ROOT

GOLDEN = Path(__file__).parent / "golden"


def test_the_mean_of_the_middle_forgets_one_disturbed_run() -> None:
    assert measure.mean_of_middle([1.0, 1.0, 1.0, 1.0, 900.0]) == 1.0


@pytest.mark.parametrize(("values", "middle"), [([3.0], 3.0), ([1.0, 3.0], 2.0), ([1.0, 2.0, 9.0], 2.0)])
def test_the_mean_of_the_middle_takes_few_values(values: list[float], middle: float) -> None:
    assert measure.mean_of_middle(values) == middle


def test_a_ratio_is_taken_pair_by_pair() -> None:
    """A drift that doubles both of a pair changes nothing."""
    found = measure.ratio([1.1, 2.2, 4.4, 8.8, 17.6], [1.0, 2.0, 4.0, 8.0, 16.0])
    assert found.count == 5
    assert all(math.isclose(value, 1.1) for value in (found.value, found.low, found.high))


def test_arms_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="longer"):
        measure.ratio([1.0], [1.0, 2.0])


def test_the_interval_holds_the_truth_most_of_the_time() -> None:
    """95 % of intervals should; percentile intervals of 20 values hold it a little less often."""
    chance = random.Random(1)
    held = 0
    for _ in range(40):
        found = measure.bootstrap([chance.gauss(5.0, 1.0) for _ in range(20)], fmean, resamples=1000)
        held += found.low <= 5.0 <= found.high
    assert held >= 32


def test_the_same_values_give_the_same_interval() -> None:
    values = [1.0, 2.0, 4.0, 3.0, 2.5]
    assert measure.bootstrap(values, fmean) == measure.bootstrap(values, fmean)


@pytest.mark.parametrize(
    ("estimate", "verdict"),
    [
        (Estimate(1.0, 0.9, 1.1, 5), "met"),
        (Estimate(1.1, 1.0, 1.3, 5), "likely met"),
        (Estimate(1.3, 1.1, 1.4, 5), "likely missed"),
        (Estimate(1.5, 1.3, 1.6, 5), "missed"),
        (Estimate(1.0, 0.9, 1.1, 4), "too few rounds"),
    ],
)
def test_a_verdict_is_only_sure_when_the_whole_interval_agrees(estimate: Estimate, verdict: str) -> None:
    assert Row("anything", estimate, goal=1.2).verdict == verdict


def test_without_a_goal_there_is_no_verdict() -> None:
    assert Row("anything", Estimate(1.0, 0.9, 1.1, 5)).verdict == ""


def test_every_other_round_goes_backwards() -> None:
    order: list[str] = []

    def arm(name: str) -> Callable[[], float]:
        def run() -> float:
            order.append(name)
            return float(len(order))

        return run

    taken = measure.alternate({"a": arm("a"), "b": arm("b")}, pairs=3)
    assert "".join(order) == "ab" + "ab" + "ba" + "ab"
    assert taken == {"a": [3.0, 6.0, 7.0], "b": [4.0, 5.0, 8.0]}


def test_a_command_that_fails_ends_the_benchmark_with_its_words() -> None:
    with pytest.raises(SystemExit, match="exit code 3\nno such thing"):
        measure.timed(["sh", "-c", "echo no such thing >&2; exit 3"])


ROWS = [
    Row("podwright --help / python -c pass", Estimate(5.04, 4.91, 5.2, 20), goal=8.0, seen="81.2 ms / 16.1 ms"),
    Row("less 0.3 s / torchrun", Estimate(1.0041, 0.9957, 1.0122, 5), goal=1.01, seen="33.21 s / 33.07 s"),
    Row("pilot of the node", Estimate(0.128, 0.119, 0.14, 12), "%", goal=0.3),
    Row("live view / detached + wait", Estimate(1.01, 0.99, 1.03, 5), seen="33.50 s / 33.21 s"),
]


def test_the_table(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "table.txt", "\n".join(measure.table(ROWS)) + "\n")


def test_a_row_comes_back_from_json() -> None:
    assert [measure.from_json(json.loads(json.dumps(measure.as_json(row)))) for row in ROWS] == ROWS


def test_the_raw_figures_are_written_with_the_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "x.json"
    measure.conclude("x", ROWS, {"seconds": {"a": [1.0]}}, {"cpu": "a CPU"}, out)
    document = json.loads(out.read_text())
    assert document["machine"]["cpu"] == "a CPU"
    assert document["raw"] == {"seconds": {"a": [1.0]}}
    assert document["rows"] == [measure.as_json(row) for row in ROWS]
    assert capsys.readouterr().out == "\n".join(measure.table(ROWS)) + "\n"


def test_an_interrupt_ends_without_a_trace() -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as end:
            measure.start(interrupted)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert end.value.code == 130


ENDED = """
from benchmarks import measure
def main():
    try:
        print("at work", flush=True)
        __import__("signal").pause()
    finally:
        print("cleared away", flush=True)
measure.start(main)
"""


def test_a_signal_to_end_lets_a_benchmark_clear_away() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDED], cwd=ROOT, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "at work\n"
        script.terminate()
        assert script.stdout.read() == "cleared away\n"
    assert script.returncode == 143


def test_this_machine_has_facts() -> None:
    facts = measure.machine()
    assert facts["cores"] >= 1
    assert facts["cpu"]
    assert facts["versions"]["podwright"]
