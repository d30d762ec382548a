"""The names of points, and of the run that they share."""

from __future__ import annotations

from pathlib import Path

from podwright.runs import RunFolder
from podwright.runs.points import point_id
from tests.unit.runs.made import asked


def test_points_are_counted_from_1() -> None:
    assert point_id("sweep-7f3k", 0) == "sweep-7f3k-1"
    assert asked("sweep-7f3k", points=2).point_ids == ["sweep-7f3k-1", "sweep-7f3k-2"]
    assert asked("sweep-7f3k").point_ids == []


def test_a_point_shares_the_folder_of_its_parent() -> None:
    point, single = asked("sweep-7f3k-1", parent="sweep-7f3k", index=0), asked("toy-2222")
    assert RunFolder(Path("runs/sweep-7f3k-1"), point).job_path == Path("runs/sweep-7f3k")
    assert RunFolder(Path("runs/toy-2222"), single).job_path == Path("runs/toy-2222")
