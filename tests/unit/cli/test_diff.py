"""The page of `diff`: 80 columns, and what differs is seen."""

from __future__ import annotations

from podwright.analysis.differences import RunDifference
from podwright.cli.commands.look.diff import page

ROWS = [
    RunDifference("workload", "command", "python train.py --epochs 3 --lr 0.1", "python train.py --epochs 3 --lr 0.01"),
    RunDifference("workload", "matrix.lr", "0.1", None),
    RunDifference("environment", "torch", "2.5.1\x1b[2J", "2.6.0"),
]


def test_values_stand_beside_each_other() -> None:
    assert list(page(ROWS, None)) == [
        "KIND         NAME       A                                    B",
        "workload     command    python train.py --epochs 3 --lr 0.1  python train.py --epochs 3 --lr 0.01",
        "workload     matrix.lr  0.1                                  -",
        "environment  torch      2.5.1\\x1b[2J                         2.6.0",
    ]


def test_of_wide_texts_the_part_that_differs_is_shown() -> None:
    lines = list(page(ROWS, 80))
    assert lines[1] == "workload     command    ... --lr 0.1  ... --lr 0.01"
    assert max(map(len, lines)) <= 80


def test_a_long_text_is_cut_on_both_sides() -> None:
    lines = list(page([RunDifference("workload", "command", "a" * 90, "b" * 90)], 80))
    assert lines[1] == f"workload  command  {'a' * 26}...  {'b' * 26}..."
