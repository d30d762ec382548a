"""A conditional GAN of BigGAN's make (Brock et al., 2019): one network makes pictures, another judges them.

Noise and kind steer every normalisation of the maker, the judge compares a picture with its kind (projection), spectral
normalisation keeps the judge smooth, and pictures are made with a running mean of the maker's weights.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

NOISE = 32
"""Numbers that a picture is made from, beside its kind."""
KIND_WIDTH = 16
KEPT = 0.995
"""How much of the running mean stays at each step."""
FIRST = 4
"""Pixels of a side where the maker begins."""


class SteeredNorm(nn.Module):
    """Batch normalisation whose gain and bias follow from noise and kind."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels, affine=False)
        self.steer = nn.Linear(NOISE + KIND_WIDTH, 2 * channels)

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        gain, bias = self.steer(code)[..., None, None].chunk(2, 1)
        out: Tensor = self.norm(x) * (1 + gain) + bias
        return out


class Up(nn.Module):
    """A block of the maker: twice the side."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([SteeredNorm(inputs), SteeredNorm(outputs)])
        self.first, self.second = nn.Conv2d(inputs, outputs, 3, 1, 1), nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.past = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, code: Tensor) -> Tensor:
        y = functional.interpolate(functional.relu(self.norms[0](x, code)), scale_factor=2)
        y = self.second(functional.relu(self.norms[1](self.first(y), code)))
        out: Tensor = y + functional.interpolate(self.past(x), scale_factor=2)
        return out


class Maker(nn.Module):
    """Pictures from noise and kind."""

    def __init__(self, kinds: int, side: int, width: int, colours: int) -> None:
        super().__init__()
        widths = _widths(side, width)[::-1]
        self.kinds = nn.Embedding(kinds, KIND_WIDTH)
        self.first = nn.Linear(NOISE + KIND_WIDTH, widths[0] * FIRST**2)
        self.blocks = nn.ModuleList(Up(*pair) for pair in pairwise(widths))
        self.last = nn.Sequential(nn.BatchNorm2d(widths[-1]), nn.ReLU(), nn.Conv2d(widths[-1], colours, 3, 1, 1))

    def forward(self, noise: Tensor, kinds: Tensor) -> Tensor:
        code = torch.cat([noise, self.kinds(kinds)], 1)
        x = self.first(code).view(len(noise), -1, FIRST, FIRST)
        for block in self.blocks:
            x = block(x, code)
        return torch.tanh(self.last(x))


class Down(nn.Module):
    """A block of the judge: half the side."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = spectral_norm(nn.Conv2d(inputs, outputs, 3, 1, 1))
        self.second = spectral_norm(nn.Conv2d(outputs, outputs, 3, 1, 1))
        self.past = spectral_norm(nn.Conv2d(inputs, outputs, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(functional.relu(self.first(functional.relu(x))))
        return functional.avg_pool2d(y + self.past(x), 2)


class Judge(nn.Module):
    """How real a picture of a kind looks."""

    def __init__(self, kinds: int, side: int, width: int, colours: int) -> None:
        super().__init__()
        widths = _widths(side, width)
        self.first = spectral_norm(nn.Conv2d(colours, widths[0], 3, 1, 1))
        self.blocks = nn.Sequential(*(Down(*pair) for pair in pairwise(widths)))
        self.last = spectral_norm(nn.Linear(widths[-1], 1))
        self.kinds = spectral_norm(nn.Embedding(kinds, widths[-1]))

    def forward(self, pictures: Tensor, kinds: Tensor) -> Tensor:
        x = functional.relu(self.blocks(self.first(pictures))).sum((2, 3))
        score: Tensor = self.last(x).squeeze(1) + (x * self.kinds(kinds)).sum(1)
        return score


def _widths(side: int, width: int) -> list[int]:
    """Channels from the full side down to the first: twice as many at half the side, at most sixteen times."""
    halvings = (side // FIRST).bit_length() - 1
    return [width * min(16, 2**number) for number in range(halvings + 1)]


class Rivals(nn.Module):
    """Both networks with their losses, which are learnt at once.

    The sum of both losses is one number to go down from: the judge sees pictures that carry no gradient to the maker,
    and the maker is judged by weights that carry none to the judge. So one backward pass serves both, and so does one
    exchange of gradients between ranks.
    """

    def __init__(self, kinds: int, side: int, width: int, colours: int) -> None:
        super().__init__()
        self.maker, self.judge = (part(kinds, side, width, colours) for part in (Maker, Judge))
        self.steady = deepcopy(self.maker).requires_grad_(False)

    def forward(self, pictures: Tensor, kinds: Tensor) -> Tensor:
        made_up = self.maker(torch.randn(len(kinds), NOISE, device=kinds.device), kinds)
        both = self.judge(torch.cat([pictures, made_up.detach()]), torch.cat([kinds, kinds]))
        real, false = both.float().chunk(2)
        judging = functional.relu(1 - real).mean() + functional.relu(1 + false).mean()
        still = {name: weight.detach() for name, weight in self.judge.named_parameters()}
        making: Tensor = -functional_call(self.judge, still, (made_up, kinds)).float().mean()
        return judging + making

    @torch.no_grad()
    def follow(self) -> None:
        """Move the running mean towards the maker as it is now."""
        pairs = zip(self.steady.parameters(), self.maker.parameters(), strict=True)
        for mean, now in pairs:
            mean.lerp_(now, 1 - KEPT)
        for kept, seen in zip(self.steady.buffers(), self.maker.buffers(), strict=True):
            kept.copy_(seen)
