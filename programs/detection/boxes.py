"""Boxes: how far they overlap, which default box answers for which shape, which guesses are kept and how good.

Boxes are (left, top, right, bottom); offsets say how a default box must be moved and stretched to fit, as in SSD
(Liu et al., 2016).
"""

from __future__ import annotations

import torch
from torch import Tensor

MOVED, STRETCHED = 0.1, 0.2
"""What an offset of 1 means, as shares of a default box: keeps offsets of all sizes alike."""
MATCHED = 0.5
"""A default box that overlaps a shape this far answers for it, and a guess that does counts as right."""
BINS = 1000
"""Steps in which a guess says how sure it is: so few that ranks can add up what they counted."""


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of every box of `a` with every one of `b`."""
    low, high = torch.maximum(a[:, None, :2], b[None, :, :2]), torch.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(2)
    return shared / (area(a)[:, None] + area(b)[None] - shared).clamp(min=1e-9)


def area(boxes: Tensor) -> Tensor:
    """Width times height."""
    return (boxes[:, 2:] - boxes[:, :2]).prod(1)


def centred(boxes: Tensor) -> tuple[Tensor, Tensor]:
    """The middle of each box and its size."""
    return (boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]


def offsets_of(boxes: Tensor, defaults: Tensor) -> Tensor:
    """What must be done to the default boxes to become these."""
    (middle, size), (place, extent) = centred(boxes), centred(defaults)
    return torch.cat([(middle - place) / extent / MOVED, torch.log(size / extent) / STRETCHED], -1)


def moved(defaults: Tensor, offsets: Tensor) -> Tensor:
    """The default boxes with this done to them."""
    place, extent = centred(defaults)
    middle, size = place + offsets[..., :2] * MOVED * extent, extent * torch.exp(offsets[..., 2:] * STRETCHED)
    return torch.cat([middle - size / 2, middle + size / 2], -1)


def match(boxes: Tensor, kinds: Tensor, defaults: Tensor) -> tuple[Tensor, Tensor]:
    """For each default box of one picture: the kind it answers for (0: nothing), and the offsets to its shape.

    Every shape has the default box that overlaps it most, however little that is.
    """
    shapes = kinds >= 0
    boxes, kinds = boxes[shapes], kinds[shapes]
    shared = overlap(defaults, boxes)
    share, nearest = shared.max(1)
    best = shared.argmax(0)
    share[best] = 1.0
    nearest[best] = torch.arange(len(boxes), device=boxes.device)
    answered = torch.where(share >= MATCHED, kinds[nearest] + 1, 0)
    return answered, offsets_of(boxes[nearest], defaults)


def keep_best(boxes: Tensor, sure: Tensor, most: int = 20, apart: float = 0.45) -> Tensor:
    """Which guesses to keep: the surest first, and none that overlaps one that is kept (non-maximum suppression)."""
    order = sure.argsort(descending=True)[: 4 * most]
    shared = overlap(boxes[order], boxes[order])
    kept: list[int] = []
    for place in range(len(order)):
        if len(kept) < most and not (shared[place, kept] > apart).any():
            kept.append(place)
    return order[kept]


def count_right(guesses: Tensor, sure: Tensor, truth: Tensor) -> Tensor:
    """Guesses of one kind in one picture, by how sure they are: how many are right, and how many there are.

    A shape counts once: of two guesses at it the surer is right and the other wrong.
    """
    counts = torch.zeros(2, BINS, dtype=torch.float64)
    shared = overlap(guesses, truth)
    for place in sure.argsort(descending=True).tolist():
        step = min(BINS - 1, int(sure[place] * BINS))
        counts[1, step] += 1
        if len(truth) and shared[place].max() >= MATCHED:
            counts[0, step] += 1
            shared[:, shared[place].argmax()] = 0
    return counts


def average_precision(counts: Tensor, shapes: float) -> float:
    """The area below the curve of precision over recall, from the counts of all pictures."""
    right, all_guesses = counts.flip(1).cumsum(1)
    recall, precision = right / max(shapes, 1.0), right / all_guesses.clamp(min=1)
    best = precision.flip(0).cummax(0).values.flip(0)  # at this recall or any higher one
    steps = torch.diff(recall, prepend=torch.zeros(1, dtype=recall.dtype))
    return float((steps * best).sum())
