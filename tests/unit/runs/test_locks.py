"""Locks that are files, and the names of points."""

from __future__ import annotations

from pathlib import Path

from podwright.runs.locks import locked_text, try_lock
from podwright.runs.points import point_id, point_ids


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with try_lock(path) as first, try_lock(path) as second:
        assert (first, second) == (True, False)
    with try_lock(path) as third:
        assert third


def test_the_words_of_a_lock_are_read_only_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    assert locked_text(path) is None
    with try_lock(path):
        path.write_text("17\n")
        assert locked_text(path) == "17\n"
    assert locked_text(path) is None


def test_points_are_counted_from_1() -> None:
    assert point_id("sweep-7f3k", 0) == "sweep-7f3k-1"
    assert point_ids("sweep-7f3k", 2) == ["sweep-7f3k-1", "sweep-7f3k-2"]
