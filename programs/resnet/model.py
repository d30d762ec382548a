"""ResNet-50 v1.5: the stride of a stage is on its first 3x3 convolution, as current reference results have it."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from pool import max_pool

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Width, blocks and first stride of each stage of ResNet-50."""
EXPANSION = 4


def unit(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """Convolution and normalisation."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    """Narrow, look around, widen, and add what came in."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.narrow = unit(inputs, width, 1)
        self.look = unit(width, width, 3, stride)
        self.widen = unit(width, outputs, 1)
        self.past = unit(inputs, outputs, 1, stride) if inputs != outputs or stride != 1 else nn.Identity()
        self.act = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.narrow(x))
        y = self.widen(self.act(self.look(y)))
        out: Tensor = self.act(y + self.past(x))
        return out


class Stem(nn.Module):
    """The first convolution, 7x7 with stride 2 on three colours, as 4x4 with stride 1 on twelve.

    Three channels leave most of a GPU's matrix unit empty. Every 2x2 square of pixels becomes twelve channels of one,
    and the 7x7 window, padded to 8x8, becomes 4x4: the same function of the same weights, several times as fast.
    """

    def __init__(self, outputs: int) -> None:
        super().__init__()
        convolution = nn.Conv2d(3, outputs, 7, 2, 3, bias=False)
        self.weight = convolution.weight
        self.normal = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        squares = functional.pixel_unshuffle(functional.pad(x, (4, 2, 4, 2)), 2)
        windows = functional.pixel_unshuffle(functional.pad(self.weight, (1, 0, 1, 0)), 2)
        out: Tensor = self.normal(functional.conv2d(squares, windows))
        return out


class ResNet(nn.Module):
    """Names what a picture shows; `stages` and `small` make the same network for pictures of a few pixels."""

    def __init__(self, classes: int, stages: tuple[tuple[int, int, int], ...] = STAGES, small: bool = False) -> None:
        super().__init__()
        first = stages[0][0]
        self.stem: nn.Module = unit(3, first, 3) if small else Stem(first)
        self.small = small
        self.act = nn.ReLU(inplace=True)
        blocks: list[nn.Module] = []
        inputs = first
        for width, count, stride in stages:
            for number in range(count):
                blocks.append(Bottleneck(inputs, width, stride if number == 0 else 1))
                inputs = width * EXPANSION
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, classes)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.stem(pictures)
        # The larger of two numbers stays the larger after ReLU: to pool first leaves it a quarter of the work.
        x = self.blocks(self.act(x if self.small else max_pool(x)))
        scores: Tensor = self.head(x.mean((2, 3)))
        return scores


def resnet50(classes: int = 1000) -> ResNet:
    """25.6 million parameters for 1000 classes."""
    return ResNet(classes)
