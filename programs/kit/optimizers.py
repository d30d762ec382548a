"""An optimizer for weights that are kept in bf16."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


class MasterAdamW(torch.optim.Optimizer):
    """AdamW over bf16 weights whose exact values, and all its state, are kept apart in fp32.

    The network then computes on bf16 weights as they are, without casting them in every step, and small updates are not
    lost in bf16's eight bits: they add up in the fp32 values, from which the weights are rounded anew.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, betas: tuple[float, float]) -> None:
        super().__init__(groups, {"lr": lr})
        self._pairs: list[tuple[Tensor, Tensor]] = []
        masters = [self._master_of(group) for group in self.param_groups]
        self._inner = torch.optim.AdamW(masters, lr=lr, betas=betas, fused=True)

    def _master_of(self, group: dict[str, Any]) -> dict[str, Any]:
        exact = [weight.detach().float().clone() for weight in group["params"]]
        self._pairs += zip(group["params"], exact, strict=True)
        return {**group, "params": exact}

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the exact values, and round the weights from them."""
        for weight, exact in self._pairs:
            exact.grad = None if weight.grad is None else weight.grad.to(torch.float32)
        for ours, inner in zip(self.param_groups, self._inner.param_groups, strict=True):
            inner["lr"] = ours["lr"]
        self._inner.step()
        torch._foreach_copy_([weight for weight, _ in self._pairs], [exact for _, exact in self._pairs])

    def state_dict(self) -> dict[str, Any]:
        """The inner optimizer's state and the exact weights."""
        return {"inner": self._inner.state_dict(), "exact": [exact for _, exact in self._pairs]}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take both back."""
        self._inner.load_state_dict(state_dict["inner"])
        for (weight, exact), kept in zip(self._pairs, state_dict["exact"], strict=True):
            exact.copy_(kept)
            weight.copy_(exact)
