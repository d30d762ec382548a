"""What is measured of a run so that two runs can be held against each other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from podwright.analysis.causes import causes_of
from podwright.analysis.traits import CPU_CORES, SensorValue, Traits, traits_of
from podwright.runs.events import Sample
from podwright.runs.record import Asked
from podwright.runs.series import ToldValue


def run_of(node_percent: float, *ranks: float) -> Traits:
    """A run of three samples in which a node and its ranks used so much."""
    values = {"cpu_percent": node_percent} | {f"rank.{rank}.cpu_percent": used for rank, used in enumerate(ranks)}
    samples = [Sample(float(second), (0, 0), 0, values) for second in range(3)]
    asked = Asked("train-7f3k", "train", "local", "local", 0.0, 1, len(ranks), {})
    return traits_of(asked, [], samples, [])


def test_cpu_use_is_that_of_the_ranks_wherever_they_run() -> None:
    """Bare, the node's count is of the whole machine, which does something else too; in a container it is the run's."""
    bare, container = run_of(96.0, 98.0, 99.0), run_of(51.0, 98.0, 99.0)
    assert bare.measured == container.measured == {CPU_CORES: SensorValue(1.97, "cores")}
    assert causes_of([bare], [container]) == []


def test_ranks_that_use_less_are_named() -> None:
    (cause,) = causes_of([run_of(50.0, 99.0)], [run_of(50.0, 33.0)])
    assert cause.text == "CPU cores in use 0.99 cores and 0.33 cores"


def test_without_ranks_nothing_is_said_of_cpus() -> None:
    assert run_of(96.0).measured == {}


Line = tuple[float | None, int, float]
"""The step that was told, how many lines it stands for, and the seconds of a step."""


def seconds_of(lines: Sequence[Line]) -> float:
    """What a rank's lines come to, in its second attempt."""
    earlier = ToldValue(0.0, 0, 0, 0, 0, 7.0, None, 1, "compute_s", 99.0)
    rows = [ToldValue(1.0, 0, 0, 1, 0, step, None, of, "compute_s", value) for step, of, value in lines]
    asked = Asked("train-7f3k", "train", "local", "local", 0.0, 1, 1, {})
    return traits_of(asked, [], [], [earlier, *rows]).steps["compute_s"]


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ([(0, 1, 0.5), (1, 1, 0.5), (2, 1, 0.5)], 1.5),  # each step tells its own
        ([(None, 1, 0.5), (None, 2, 0.5)], 1.5),  # no step is told: lines are counted
        ([(9, 1, 2.0), (19, 1, 0.5), (29, 1, 0.5)], 30.0),  # every tenth tells a mean step: of 30 steps
        ([(1, 1, 0.5), (5, 1, 0.5), (9, 1, 0.5)], 5.0),  # the first line came after two steps
        ([(5000, 1, 0.5), (5004, 1, 0.5)], 4.0),  # the training went on: the first line is as the next
        ([(0, 1, 0.5), (3, 3, 0.5), (6, 3, 0.5)], 3.5),  # thinned: each stands for three
        ([(4, 1, 0.5)], 0.5),
        ([(4, 1, 0.5), (4, 1, 0.25)], 0.75),  # a second line of the same step
    ],
)
def test_a_value_stands_for_the_steps_since_the_one_before(lines: list[Line], seconds: float) -> None:
    assert seconds_of(lines) == pytest.approx(seconds)
