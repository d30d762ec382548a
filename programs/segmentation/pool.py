"""A prediction pass over frames that were not trained on: what the model is unsure of, and what it takes for what.

`samples.jsonl` has a line for each frame, which `podwright data select --confusion RUN` and `--uncertainty RUN` read:

    {"image": PATH BELOW THE FOLDER, "uncertainty": 0.31, "confused": {"Car": {"Truck": 1200}}}

`uncertainty` is what the most likely class of a pixel lacks to certainty, over all pixels of the frame; `confused` has
pixels by true class and by the class that they were taken for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from metrics import confusion

Row = dict[str, Any]


def rows_of(shares: Tensor, truth: Tensor, images: Sequence[str], names: Sequence[str]) -> Iterator[Row]:
    """A row for each frame of a batch: shares of classes (N, C, H, W), true classes, paths, names of classes."""
    top, said = shares.float().max(1)
    for place, image in enumerate(images):
        matrix = confusion(said[place], truth[place].to(said.device), len(names))
        unsure = round(1.0 - float(top[place].mean()), 5)
        yield {"image": image, "uncertainty": unsure, "confused": confused(matrix, names)}


def confused(matrix: Tensor, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Pixels by true class and by the class they were taken for, where that is another."""
    wrong = matrix.cpu().clone()
    wrong.fill_diagonal_(0)
    rows: dict[str, dict[str, int]] = {}
    for truth, said in torch.nonzero(wrong).tolist():
        rows.setdefault(names[truth], {})[names[said]] = int(wrong[truth, said])
    return rows
