"""Scores from a confusion matrix, against counting by hand."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from classes import IGNORE
from metrics import confusion, iou_per_class, mean_iou, pixel_accuracy

pixels = st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, IGNORE]), st.integers(0, 3)), min_size=1, max_size=40)


def test_by_hand() -> None:
    truth = torch.tensor([0, 0, 0, 1, 1, IGNORE], dtype=torch.uint8)
    said = torch.tensor([0, 0, 1, 1, 2, 2])
    matrix = confusion(said, truth, 3)
    assert matrix.tolist() == [[2, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert iou_per_class(matrix) == [2 / 3, 1 / 3, None]
    assert mean_iou(matrix) == 0.5
    assert pixel_accuracy(matrix) == 0.6


def test_nothing_to_score() -> None:
    matrix = confusion(torch.tensor([1]), torch.tensor([IGNORE], dtype=torch.uint8), 2)
    assert (mean_iou(matrix), pixel_accuracy(matrix)) == (0.0, 0.0)


@given(pixels)
def test_against_sets(pairs: list[tuple[int, int]]) -> None:
    truth, said = torch.tensor([t for t, _ in pairs], dtype=torch.uint8), torch.tensor([s for _, s in pairs])
    counted = [(i, t, s) for i, (t, s) in enumerate(pairs) if t != IGNORE]
    for name, iou in enumerate(iou_per_class(confusion(said, truth, 4))):
        true, there = {i for i, t, _ in counted if t == name}, {i for i, _, s in counted if s == name}
        expected = len(true & there) / len(true | there) if true else None
        assert iou == expected
