"""Number formats: which one a training computes in, and what that takes."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import chain
from typing import Any

import torch

REDUCED = {"bf16": torch.bfloat16, "fp16": torch.float16}


def choose(asked: str, device: torch.device) -> str:
    """The format asked for; "auto" is bf16 on a GPU that has it, else fp32."""
    if asked != "auto":
        return asked
    return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"


class Precision:
    """One number format on one device.

    Weights stay in fp32; the operations that gain compute in the lower format. fp16 has few exponents, so its loss is
    scaled up before the backward pass and its gradients down again.
    """

    def __init__(self, asked: str, device: torch.device) -> None:
        self.name = choose(asked, device)
        self._device = device
        if self.name == "tf32":
            torch.set_float32_matmul_precision("high")
            torch.backends.cudnn.allow_tf32 = True
        self._scaler = torch.amp.GradScaler(device.type, enabled=self.name == "fp16")

    def reduced(self) -> AbstractContextManager[Any]:
        """A region whose operations compute in the lower format."""
        kind = REDUCED.get(self.name, torch.bfloat16)
        return torch.autocast(self._device.type, kind, enabled=self.name in REDUCED)

    def backward(self, loss: torch.Tensor) -> None:
        """Gradients of the loss, scaled where the format needs it."""
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def update(self, optimizer: torch.optim.Optimizer, steepest: float | None = None) -> None:
        """One step of the optimizer; gradients are cut to `steepest` first, where it is given."""
        if steepest is not None:
            self._scaler.unscale_(optimizer)
            weights = chain.from_iterable(group["params"] for group in optimizer.param_groups)
            torch.nn.utils.clip_grad_norm_(list(weights), steepest)
        self._scaler.step(optimizer)
        self._scaler.update()
