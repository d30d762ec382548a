"""A single-shot detector: one pass over a picture says of every default box what is in it and how it must be moved.

As SSD (Liu et al., 2016): maps of several sizes, each for the shapes of its size, and the hardest of the boxes with
nothing in them to learn from.
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional

from boxes import match, moved

STRIDES = (8, 16, 32)
"""Pixels of a picture for each pixel of a map."""
SIZES = ((1.5, 2.2), (1.5, 2.0), (1.2,))
"""Sides of the default boxes of each map, in strides."""
RATIOS = (1.0, 2.0, 0.5)
NEGATIVES = 3
"""Boxes with nothing in them that are learnt from, for each that has something: the worst ones."""


def default_boxes(side: int) -> Tensor:
    """All of them for pictures of this side, as shares of it: map by map, row by row."""
    rows = []
    for stride, sizes in zip(STRIDES, SIZES, strict=True):
        count = side // stride
        for row, column, size, ratio in product(range(count), range(count), sizes, RATIOS):
            middle = torch.tensor([column + 0.5, row + 0.5])
            half = torch.tensor([size * ratio**0.5, size / ratio**0.5]) / 2
            rows.append(torch.cat([middle - half, middle + half]) / count)
    return torch.stack(rows)


def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """Two convolutions, the first with a stride."""
    layers: list[nn.Module] = []
    for given, step in ((inputs, stride), (outputs, 1)):
        layers += [nn.Conv2d(given, outputs, 3, step, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Detector(nn.Module):
    """The network with its loss; `kinds` are those of shapes, without "nothing"."""

    defaults: Tensor

    def __init__(self, kinds: int, side: int, width: int) -> None:
        super().__init__()
        self.outputs = kinds + 1
        self.register_buffer("defaults", default_boxes(side), persistent=False)
        self.stem = nn.Sequential(block(3, width, 2), block(width, 2 * width, 2))
        stages, heads = [], []
        inputs = 2 * width
        for sizes in SIZES:
            stages.append(block(inputs, 4 * width, 2))
            heads.append(nn.Conv2d(4 * width, len(sizes) * len(RATIOS) * (self.outputs + 4), 3, 1, 1))
            inputs = 4 * width
        self.stages, self.heads = nn.ModuleList(stages), nn.ModuleList(heads)

    def guess(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of every kind and offsets, for each default box."""
        x = self.stem(pictures.to(torch.float32, memory_format=torch.channels_last).sub(110).div(64))
        rows = []
        for stage, head in zip(self.stages, self.heads, strict=True):
            x = stage(x)
            rows.append(head(x).permute(0, 2, 3, 1).reshape(len(pictures), -1, self.outputs + 4))
        guesses = torch.cat(rows, 1).float()
        return guesses[..., : self.outputs], guesses[..., self.outputs :]

    def forward(self, pictures: Tensor, boxes: Tensor, kinds: Tensor) -> Tensor:
        scores, offsets = self.guess(pictures)
        pairs = [match(*truth, self.defaults) for truth in zip(boxes, kinds, strict=True)]
        answers, wanted = torch.stack([pair[0] for pair in pairs]), torch.stack([pair[1] for pair in pairs])
        full = answers > 0
        count = full.sum().clamp(min=1)
        place = functional.smooth_l1_loss(offsets[full], wanted[full], reduction="sum")
        wrong = functional.cross_entropy(scores.transpose(1, 2), answers, reduction="none")
        empty = wrong.detach().masked_fill(full, 0.0)
        rank = empty.argsort(1, descending=True).argsort(1)
        learnt = full | (rank < NEGATIVES * full.sum(1, keepdim=True))
        return (place + wrong[learnt].sum()) / count

    def detect(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        """Boxes, and how sure the network is of each kind in each of them."""
        scores, offsets = self.guess(pictures)
        return moved(self.defaults, offsets), scores.softmax(2)[..., 1:]
