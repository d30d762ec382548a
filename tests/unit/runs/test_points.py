"""The names of points."""

from __future__ import annotations

from podwright.runs.points import point_id, point_ids


def test_points_are_counted_from_1() -> None:
    assert point_id("sweep-7f3k", 0) == "sweep-7f3k-1"
    assert point_ids("sweep-7f3k", 2) == ["sweep-7f3k-1", "sweep-7f3k-2"]
