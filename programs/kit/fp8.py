"""Matrix products in fp8, by PyTorch's own scaled_mm: twice bf16's rate on a GPU that has it.

Values and weights become e4m3, gradients e5m2, whose exponents reach further; each tensor is scaled by its largest
value. Sums are made in fp32 by the GPU and given back in bf16. Weights and the optimizer's state stay as they were.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

VALUES, SLOPES = torch.float8_e4m3fn, torch.float8_e5m2


def scaled(tensor: Tensor, kind: torch.dtype) -> tuple[Tensor, Tensor]:
    """A tensor in fp8, and what its values are to be multiplied by."""
    most = torch.finfo(kind).max
    scale = tensor.abs().amax().float().clamp(min=1e-12) / most
    return (tensor.float() / scale).clamp(-most, most).to(kind), scale


def product(left: Tensor, right: Tensor, scales: tuple[Tensor, Tensor], fast: bool) -> Tensor:
    """left @ right, of which the second lies column by column."""
    columns = right.t().contiguous().t()
    out: Tensor = torch._scaled_mm(
        left.contiguous(), columns, scales[0], scales[1], out_dtype=torch.bfloat16, use_fast_accum=fast
    )
    return out


class Product(torch.autograd.Function):
    """A linear layer's product, and those of its gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, weight: Tensor) -> Tensor:
        """Keep both in fp8: half the memory."""
        (left, left_scale), (right, right_scale) = scaled(values, VALUES), scaled(weight, VALUES)
        ctx.save_for_backward(left, left_scale, right, right_scale)
        return product(left, right.t(), (left_scale, right_scale), fast=True)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient of each, in bf16."""
        left, left_scale, right, right_scale = ctx.saved_tensors
        slope, scale = scaled(gradients[0], SLOPES)
        to_values = product(slope, right, (scale, right_scale), fast=False)
        to_weight = product(slope.t(), left, (scale, left_scale), fast=False)
        return to_values, to_weight


class Linear(nn.Linear):
    """A layer without bias whose products are made in fp8."""

    def forward(self, x: Tensor) -> Tensor:
        """As nn.Linear's; a CPU has no such product, so there it is made of the same rounded values."""
        if not x.is_cuda:
            return nn.functional.linear(rounded(x), rounded(self.weight))
        out: Tensor = Product.apply(x.flatten(0, -2).bfloat16(), self.weight.bfloat16())
        return out.view(*x.shape[:-1], -1)


def rounded(tensor: Tensor) -> Tensor:
    """What fp8 leaves of a tensor, with the gradient of the tensor itself."""
    with torch.no_grad():
        short, scale = scaled(tensor, VALUES)
        rest = short.float() * scale - tensor
    return tensor + rest.to(tensor.dtype)


def use_fp8(net: nn.Module) -> None:
    """Make the products of all linear layers below in fp8; weights and their names stay."""
    for module in net.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear
