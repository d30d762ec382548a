"""The loss of a token: how little the network expected it.

The scores of all tokens over the whole vocabulary are the largest thing a language model makes: 13 GB for 131,072
tokens. Plain PyTorch writes them, reads them for the loss, reads them again for their gradient and writes that beside.
On a GPU one kernel does all of it in place: it reads a token's scores, and leaves their gradient where they lay.
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

BLOCK = 4096


def token_loss(known: Tensor, weight: Tensor, truth: Tensor) -> Tensor:
    """The mean loss of the tokens whose truth is not negative, given what is known of each and the output layer."""
    if triton is not None and known.is_cuda:
        loss: Tensor = FusedLoss.apply(known, weight, truth)
        return loss
    scores = functional.linear(known, weight).float()
    return functional.cross_entropy(scores, truth, ignore_index=-1)


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def loss_kernel(scores, truth, losses, scale, columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        """One token a program: its loss, and the gradient of its scores in their place."""
        row = tl.program_id(0)
        scores += row.to(tl.int64) * columns
        target = tl.load(truth + row)
        highest = -float("inf")
        total = 0.0
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            block = tl.load(scores + at, mask=at < columns, other=-float("inf")).to(tl.float32)
            higher = tl.maximum(highest, tl.max(block, 0))
            total = total * tl.exp(highest - higher) + tl.sum(tl.exp(block - higher), 0)
            highest = higher
        counts = target >= 0
        expected = tl.load(scores + tl.maximum(target, 0)).to(tl.float32)
        tl.store(losses + row, tl.where(counts, highest + tl.log(total) - expected, 0.0))
        factor = tl.where(counts, tl.load(scale), 0.0)
        tl.debug_barrier()  # the expected score is read before any of them is overwritten
        for start in range(0, columns, BLOCK):
            at = start + tl.arange(0, BLOCK)
            block = tl.load(scores + at, mask=at < columns, other=-float("inf")).to(tl.float32)
            gradient = (tl.exp(block - highest) / total - tl.where(at == target, 1.0, 0.0)) * factor
            tl.store(scores + at, gradient.to(scores.dtype.element_ty), mask=at < columns)

    @torch.library.triton_op("podwright_programs::loss_in_place", mutates_args={"scores"})
    def loss_in_place(scores: Tensor, truth: Tensor, scale: Tensor) -> Tensor:
        """Losses of all tokens; `scores` become their own gradient, times `scale`."""
        losses = torch.empty(scores.shape[0], dtype=torch.float32, device=scores.device)
        torch.library.wrap_triton(loss_kernel)[(scores.shape[0],)](
            scores, truth, losses, scale, scores.shape[1], BLOCK=BLOCK, num_warps=8
        )
        return losses


class FusedLoss(torch.autograd.Function):
    """The output layer and the loss as one step, whose gradient is there before it is asked for."""

    @staticmethod
    def forward(ctx: Any, known: Tensor, weight: Tensor, truth: Tensor) -> Tensor:
        """Keep the gradient of the scores instead of the scores."""
        kind = known.dtype
        if torch.is_autocast_enabled("cuda"):
            kind = torch.get_autocast_dtype("cuda")
        inputs, layer = known.to(kind), weight.to(kind)
        scores = inputs @ layer.t()
        scale = (truth >= 0).sum().clamp(min=1).float().reciprocal()
        losses: Tensor = loss_in_place(scores, truth, scale)
        ctx.save_for_backward(inputs, layer, scores)
        ctx.kinds = known.dtype, weight.dtype
        return losses.sum() * scale

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """Two products. The gradient that comes in is 1, or what scales a loss in fp16: it goes on the results."""
        inputs, layer, scores = ctx.saved_tensors
        to_known, to_weight = ctx.kinds
        factor = gradients[0]
        known = (scores @ layer) * factor.to(scores.dtype)
        weight = (scores.t() @ inputs) * factor.to(scores.dtype)
        return known.to(to_known), weight.to(to_weight), None
