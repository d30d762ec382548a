"""The line that tells how far long work is."""

from __future__ import annotations

from podwright.cli.terminal import figures
from podwright.cli.terminal.meter import Meter


def test_without_an_end_it_only_counts() -> None:
    assert Meter("scan", "files").line(12, None) == "scan      12 files"


def test_with_an_end_it_has_a_bar() -> None:
    assert Meter("stats", "labels").line(5, 10) == f"stats     {'━' * 15}{'╌' * 15}  5 of 10 labels"


def test_bytes_have_their_units_and_files_stand_beside() -> None:
    line = Meter("staging", figure=figures.size).line(5 << 30, 10 << 30, "1 of 2 files")
    assert line == f"staging   {'━' * 15}{'╌' * 15}  5 GiB of 10 GiB, 1 of 2 files"
