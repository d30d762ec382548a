"""What differs between two runs: one function for `diff`, `compare` and suites."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podwright.analysis.causes import causes_of
from podwright.analysis.differences import RunDifference, differences, mixed
from podwright.analysis.settings import Settings, settings_of
from podwright.analysis.traits import Traits
from podwright.runs.events import AttemptStarted, Event, PilotStarted, SoftwareFound
from podwright.runs.record import Asked

WORKLOAD: dict[str, Any] = {
    "name": "train",
    "command": ["python", "train.py", "--lr", "0.1"],
    "env": {"OMP_NUM_THREADS": "1"},
    "resources": {"gpus": 1, "memory": None},
    "data": {"frames": "a2d2"},
    "matrix": {},
}
ASKED = Asked(
    "train-7f3k",
    "train",
    "local",
    "local",
    0.0,
    1,
    1,
    WORKLOAD,
    code={"sha256": "9f2c41d07be3aa", "commit": "1234567", "changed": False, "folder": "/home/me/w"},
    inputs={"frames": {"selection": "a2d2", "digest": "sha256:1"}},
    image={"name": "registry/train:1", "digest": "sha256:9"},
    version="0.3.0",
)
GPU = {"name": "NVIDIA H200"}
EVENTS = (
    AttemptStarted(time=2.0, epoch=(0, 0), node=0, hosts=("n1",)),
    PilotStarted(time=1.0, epoch=(0, 0), node=0, gpus=(GPU,), driver="570.1", kernel="6.1", python="3.11", cpus=8),
    SoftwareFound(time=1.0, epoch=(0, 0), node=0, python="3.12.1", torch="2.5.1"),
)


def given(events: tuple[Event, ...] = EVENTS, **changed: Any) -> Settings:
    """The settings of a run that is as ours but for some of its fields."""
    return settings_of(replace(ASKED, **changed), events)


def apart(a: Settings, b: Settings) -> list[tuple[str, str, str | None, str | None]]:
    """The differences as plain tuples."""
    return [(row.kind, row.name, row.a, row.b) for row in differences([a], [b])]


def test_runs_of_the_same_are_alike() -> None:
    assert apart(given(), given(id="train-9k2p", created_at=9.0)) == []


def test_fields_of_the_workload_are_named_one_by_one() -> None:
    other = {**WORKLOAD, "env": {"OMP_NUM_THREADS": "2"}, "resources": {"gpus": 1, "memory": "2GiB"}, "retries": 3}
    assert apart(given(), given(workload=other, matrix={"lr": 0.1})) == [
        ("workload", "env.OMP_NUM_THREADS", "1", "2"),
        ("workload", "resources.memory", None, "2GiB"),
        ("workload", "retries", None, "3"),
        ("workload", "matrix.lr", None, "0.1"),
    ]


def test_each_kind_has_its_own_differences() -> None:
    events = (
        AttemptStarted(time=2.0, epoch=(0, 0), node=0, hosts=("n2",)),
        PilotStarted(time=1.0, epoch=(0, 0), node=0, gpus=(GPU, GPU), driver="580.0", kernel="6.1", cpus=8),
        SoftwareFound(time=1.0, epoch=(0, 0), node=0, python="3.12.1", torch="2.6.0"),
    )
    code = {"sha256": "aaaa41d07be3aa", "commit": "7654321", "changed": True, "folder": "/home/me/w"}
    inputs = {"frames": {"selection": "a2d2", "digest": "sha256:2"}}
    assert apart(given(), given(events, code=code, inputs=inputs)) == [
        ("code", "snapshot", "9f2c41d07be3", "aaaa41d07be3"),
        ("code", "commit", "1234567", "7654321"),
        ("code", "changed since", "no", "yes"),
        ("environment", "torch", "2.5.1", "2.6.0"),
        ("environment", "pilot's python", "3.11", None),
        ("environment", "driver", "570.1", "580.0"),
        ("data", "frames", "sha256:1", "sha256:2"),
        ("hardware", "hosts", "n1", "n2"),
        ("hardware", "GPUs", "1 x NVIDIA H200", "2 x NVIDIA H200"),
    ]


def test_the_same_code_of_another_commit_is_the_same_code() -> None:
    assert apart(given(), given(code={**(ASKED.code or {}), "commit": "7654321"})) == []


def test_a_path_that_is_no_selection_counts_as_it_is_written() -> None:
    a, b = ({**WORKLOAD, "data": {"frames": path}} for path in ("/data/a", "/data/b"))
    rows = apart(given(workload=a, inputs=None), given(workload=b, inputs=None))
    assert rows == [("data", "frames", "/data/a", "/data/b")]


def test_of_several_runs_a_side_all_values_count() -> None:
    low, high = given(matrix={"lr": 0.01}), given(matrix={"lr": 0.1})
    assert differences([low, high], [high]) == [RunDifference("workload", "matrix.lr", "0.01 or 0.1", "0.1")]


def test_compare_names_the_same_differences_as_causes() -> None:
    a, b = given(target="local"), given(target="adas:slurm")
    (cause,) = causes_of([Traits(a)], [Traits(b)])
    (row,) = differences([a], [b])
    assert (cause.kind, cause.what, cause.a, cause.b) == (row.kind, row.name, row.a, row.b)
    assert cause.text == "target local and adas:slurm"


def test_runs_of_one_cell_may_differ_in_where_they_ran_alone() -> None:
    """A kernel is that of the node; code, image, packages and data are what was measured."""
    base = settings_of(ASKED, EVENTS)
    assert mixed([]) == mixed([base]) == mixed([base, base]) == []
    assert mixed([base, {**base, ("environment", "kernel"): "6.2", ("hardware", "hosts"): "n7"}]) == []
    for key in (("code", "snapshot"), ("environment", "image digest"), ("environment", "torch"), ("data", "frames")):
        changed = {**base, key: "other"}
        assert (key[0], key[1], "other") in [(row.kind, row.name, row.b) for row in mixed([base, base, changed])]
