"""What is minimised."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from classes import IGNORE

SMALL_FIRST = 0.6  # a class weighs by its pixels to the power of minus this: 0 is every pixel alike, 1 every class


def loss_of(scores: Tensor, truth: Tensor) -> Tensor:
    """Cross entropy, small classes weighing more, plus a soft Dice loss over the classes in the batch.

    Plain cross entropy learns what is large first and poles last; Dice counts every class the same, as the mean IoU
    does, but is silent about a class that is never said.
    """
    counted = (truth != IGNORE).flatten().float()
    target = truth.flatten().long() * counted.long()
    # One row per pixel: the order of memory the network leaves, and half the time of working on images.
    log_shares = F.log_softmax(scores.float().permute(0, 2, 3, 1).flatten(0, 2), dim=1)
    at_truth = log_shares.gather(1, target[:, None])[:, 0]
    none = torch.zeros(scores.shape[1], device=scores.device)
    true = none.index_add(0, target, counted)
    weights = true.clamp(min=1).pow(-SMALL_FIRST)[target] * counted
    entropy = -(at_truth * weights).sum() / weights.sum().clamp(min=1e-9)
    hits, said = none.index_add(0, target, at_truth.exp() * counted), counted @ log_shares.exp()
    there = true > 0
    dice = 1 - (2 * hits + 1) / (true + said + 1)
    return entropy + (dice * there).sum() / there.sum().clamp(min=1)
