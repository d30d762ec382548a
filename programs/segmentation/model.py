"""A small residual U-Net for semantic segmentation; one knob, the width, sets its size.

The stem halves the picture and the head doubles the answer again by shuffling channels into pixels: full-size
convolutions, which cost most and learn least, are left out, and thin things still come out sharp.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

STRIDE = 16  # a picture is padded to a multiple of this


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.short = (
            nn.Conv2d(inputs, outputs, 1, stride, bias=False) if (inputs, stride) != (outputs, 1) else nn.Identity()
        )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(self.second_norm(self.second(y)) + self.short(x))


class Up(nn.Module):
    """Double the size of what is coarse and join it with what is fine."""

    def __init__(self, coarse: int, fine: int) -> None:
        super().__init__()
        self.narrow = nn.Conv2d(coarse, fine, 1, bias=False)
        self.block = Block(2 * fine, fine)

    def forward(self, coarse: Tensor, fine: Tensor) -> Tensor:
        up = F.interpolate(self.narrow(coarse), scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.block(torch.cat((up, fine), dim=1))  # type: ignore[no-any-return]


class UNet(nn.Module):
    """Pictures in (N, 3, H, W), class scores out (N, classes, H, W), any H and W."""

    def __init__(self, classes: int, width: int = 24, dropout: float = 0.1) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 6 * width]
        self.stem = nn.Sequential(nn.Conv2d(3, width, 5, 2, 2, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.top = Block(width, width)
        self.down = nn.ModuleList(Block(a, b, stride=2) for a, b in pairwise(widths))
        self.dropout = nn.Dropout2d(dropout)
        self.up = nn.ModuleList(Up(b, a) for a, b in reversed(list(pairwise(widths))))
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):  # PyTorch's own start is too faint for so few steps
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        self.head = nn.Conv2d(width, 4 * classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        x = F.pad(x, (0, -width % STRIDE, 0, -height % STRIDE))
        fine = [self.top(self.stem(x))]
        for down in self.down:
            fine.append(down(fine[-1]))
        coarse = self.dropout(fine.pop())
        for up in self.up:
            coarse = up(coarse, fine.pop())
        return F.pixel_shuffle(self.head(coarse), 2)[..., :height, :width]


def to_device(pictures: Tensor, device: torch.device) -> Tensor:
    """Bytes to centred numbers, on the device, in the memory order convolutions like."""
    pictures = pictures.to(device, non_blocking=True, memory_format=torch.channels_last)
    return (pictures.float() - 115) / 64
