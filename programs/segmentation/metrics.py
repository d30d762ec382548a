"""Scores of a segmentation, all from one confusion matrix: rows are the truth, columns what was said."""

from __future__ import annotations

import torch
from torch import Tensor

from classes import IGNORE


def confusion(said: Tensor, truth: Tensor, classes: int) -> Tensor:
    """Count pixels by true and said class; ignored pixels are left out."""
    counted = truth != IGNORE
    pairs = truth[counted].long() * classes + said[counted].long()
    return torch.bincount(pairs, minlength=classes * classes).view(classes, classes)


def iou_per_class(matrix: Tensor) -> list[float | None]:
    """Intersection over union of every class; None where the truth has none of it."""
    hits = matrix.diagonal().double()
    true, said = matrix.sum(1).double(), matrix.sum(0).double()
    iou = hits / (true + said - hits).clamp(min=1)
    return [float(value) if there else None for value, there in zip(iou, true > 0, strict=True)]


def mean_iou(matrix: Tensor) -> float:
    """Mean over the classes that the truth has; 0 when it has none."""
    there = [value for value in iou_per_class(matrix) if value is not None]
    return sum(there) / len(there) if there else 0.0


def pixel_accuracy(matrix: Tensor) -> float:
    """Share of pixels that are right."""
    return float(matrix.diagonal().sum()) / max(1, int(matrix.sum()))
