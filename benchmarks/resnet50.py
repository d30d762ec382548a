"""ResNet-50 in plain PyTorch, with the stride on the 3x3 convolution as current reference results have it."""

from __future__ import annotations

from torch import Tensor, nn

STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""Width, blocks and first stride of each stage."""
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


def resnet50(classes: int = 1000) -> nn.Sequential:
    """25.6 million parameters for 1000 classes."""
    layers: list[nn.Module] = [unit(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, blocks, stride in STAGES:
        for number in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if number == 0 else 1))
            inputs = width * EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
