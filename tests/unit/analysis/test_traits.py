"""What is measured of a run so that two runs can be held against each other."""

from __future__ import annotations

from podwright.analysis.causes import causes_of
from podwright.analysis.traits import CPU_CORES, SensorValue, Traits, traits_of
from podwright.runs.events import Sample
from podwright.runs.record import Asked


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
