"""The 3x3 maximum with stride 2 after ResNet's first convolution, with kernels of its own on a GPU.

This layer's input is the largest tensor of the network. What a compiler makes of its backward pass asks four windows
for each of its pixels and is bound by index arithmetic; here one program takes a 2x2 square of pixels, whose windows
are neighbours, loads those once, and is bound by memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

try:
    import triton
    import triton.language as tl
except ImportError:  # a PyTorch without CUDA has none, and no use for it
    triton = None

COLUMNS = 8
"""Windows in a row that one program takes."""


def max_pool(pictures: Tensor) -> Tensor:
    """The largest of each 3x3 window, every second pixel, one pixel of padding."""
    is_channels_last = pictures.is_contiguous(memory_format=torch.channels_last)
    if triton is None or not pictures.is_cuda or not is_channels_last or any(side % 2 for side in pictures.shape[2:]):
        return functional.max_pool2d(pictures, 3, 2, 1)
    pooled: Tensor = Pool.apply(pictures)
    return pooled


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def pool_kernel(x, out, places, height, width, CHANNELS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
        """The largest of each window, and its place in it: 0 to 8, row by row."""
        row, block = tl.program_id(0), tl.program_id(1)
        picture, i = (row // height).to(tl.int64), row % height
        j = block * COLUMNS + tl.arange(0, COLUMNS)[:, None]
        channel = tl.arange(0, CHANNELS)[None, :]
        best = tl.full((COLUMNS, CHANNELS), -float("inf"), tl.float32)
        place = tl.zeros((COLUMNS, CHANNELS), tl.int32)
        x += picture * height * width * 4 * CHANNELS
        for k in tl.static_range(9):
            down, across = 2 * i + k // 3 - 1, 2 * j + k % 3 - 1
            inside = (down >= 0) & (across >= 0) & (j < width)
            value = tl.load(x + (down * 2 * width + across) * CHANNELS + channel, mask=inside, other=-float("inf"))
            value = value.to(tl.float32)
            place = tl.where(value > best, k, place)
            best = tl.maximum(best, value)
        at = picture * height * width * CHANNELS + (i * width + j) * CHANNELS + channel
        tl.store(out + at, best.to(out.dtype.element_ty), mask=j < width)
        tl.store(places + at, place.to(tl.uint8), mask=j < width)

    @triton.jit  # type: ignore[untyped-decorator]
    def part_of(gradient, places, i, j, height, width, channel, k: tl.constexpr, CHANNELS: tl.constexpr):  # type: ignore[no-untyped-def]
        """What window (i, j) gives to the pixel at its place `k`."""
        inside = (i < height) & (j < width)
        at = (i * width + j) * CHANNELS + channel
        chosen = tl.load(places + at, mask=inside, other=255)
        return tl.where(chosen == k, tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32), 0.0)

    @triton.jit  # type: ignore[untyped-decorator]
    def unpool_kernel(gradient, places, out, height, width, CHANNELS: tl.constexpr, COLUMNS: tl.constexpr):  # type: ignore[no-untyped-def]
        """The gradient of a 2x2 square of pixels, from the four windows that they share."""
        row, block = tl.program_id(0), tl.program_id(1)
        picture, i = (row // height).to(tl.int64), row % height
        j = block * COLUMNS + tl.arange(0, COLUMNS)[:, None]
        channel = tl.arange(0, CHANNELS)[None, :]
        gradient += picture * height * width * CHANNELS
        places += picture * height * width * CHANNELS
        out += picture * height * width * 4 * CHANNELS
        h, w, c = height, width, channel
        first = part_of(gradient, places, i, j, h, w, c, 4, CHANNELS)
        right = part_of(gradient, places, i, j, h, w, c, 5, CHANNELS)
        right += part_of(gradient, places, i, j + 1, h, w, c, 3, CHANNELS)
        below = part_of(gradient, places, i, j, h, w, c, 7, CHANNELS)
        below += part_of(gradient, places, i + 1, j, h, w, c, 1, CHANNELS)
        across = part_of(gradient, places, i, j, h, w, c, 8, CHANNELS)
        across += part_of(gradient, places, i, j + 1, h, w, c, 6, CHANNELS)
        across += part_of(gradient, places, i + 1, j, h, w, c, 2, CHANNELS)
        across += part_of(gradient, places, i + 1, j + 1, h, w, c, 0, CHANNELS)
        at = (2 * i * 2 * width + 2 * j) * CHANNELS + channel
        kind = out.dtype.element_ty
        tl.store(out + at, first.to(kind), mask=j < width)
        tl.store(out + at + CHANNELS, right.to(kind), mask=j < width)
        tl.store(out + at + 2 * width * CHANNELS, below.to(kind), mask=j < width)
        tl.store(out + at + (2 * width + 1) * CHANNELS, across.to(kind), mask=j < width)

    @torch.library.triton_op("podwright_programs::pool", mutates_args={})
    def pool(x: Tensor) -> tuple[Tensor, Tensor]:
        """The largest of each window, and where it is."""
        count, channels, height, width = x.shape
        shape = count, channels, height // 2, width // 2
        out = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        places = torch.empty(shape, dtype=torch.uint8, device=x.device, memory_format=torch.channels_last)
        grid = count * shape[2], triton.cdiv(shape[3], COLUMNS)
        torch.library.wrap_triton(pool_kernel)[grid](
            x, out, places, shape[2], shape[3], CHANNELS=channels, COLUMNS=COLUMNS
        )
        return out, places

    @torch.library.triton_op("podwright_programs::unpool", mutates_args={})
    def unpool(gradient: Tensor, places: Tensor) -> Tensor:
        """The gradient of what was pooled."""
        count, channels, height, width = places.shape
        out = torch.empty(
            (count, channels, 2 * height, 2 * width),
            dtype=gradient.dtype,
            device=gradient.device,
            memory_format=torch.channels_last,
        )
        grid = count * height, triton.cdiv(width, COLUMNS)
        torch.library.wrap_triton(unpool_kernel)[grid](
            gradient, places, out, height, width, CHANNELS=channels, COLUMNS=COLUMNS
        )
        return out


class Pool(torch.autograd.Function):
    """Both directions."""

    @staticmethod
    def forward(ctx: Any, pictures: Tensor) -> Tensor:
        """Keep where each maximum was."""
        out: Tensor
        out, places = pool(pictures)
        ctx.save_for_backward(places)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """Give each gradient to the pixel it came from."""
        (places,) = ctx.saved_tensors
        gradient: Tensor = unpool(gradients[0].contiguous(memory_format=torch.channels_last), places)
        return gradient
