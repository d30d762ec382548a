"""An optimizer for weights that are kept in bf16."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor

EPSILON = 1e-8


def _update(weight: Tensor, slope: Tensor, exact: Tensor, mean: Tensor, square: Tensor, given: Tensor) -> None:
    """AdamW's update of one weight.

    `given` holds: what decay leaves of a weight, the rate over the mean's correction, the root of the square's
    correction, and what the mean and the square keep of their last values.
    """
    kept, rate, root, mean_kept, square_kept = given.unbind()
    slope = slope.to(torch.float32)
    mean.copy_(mean * mean_kept + slope * (1 - mean_kept))
    square.copy_(square * square_kept + slope * slope * (1 - square_kept))
    exact.copy_(exact * kept - rate * mean / (square.sqrt() / root + EPSILON))
    weight.copy_(exact)


@cache
def _update_at_once() -> Callable[..., None]:
    """The update as one kernel, which reads and writes each value once: on a GPU it takes as long as its traffic."""
    return torch.compile(_update, dynamic=True)


class MasterAdamW(torch.optim.Optimizer):
    """AdamW over bf16 weights whose exact values, and all its state, are kept apart in fp32.

    The network then computes on bf16 weights as they are, without casting them in every step, and small updates are not
    lost in bf16's eight bits: they add up in the fp32 values, from which the weights are rounded anew.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, betas: tuple[float, float]) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": 0.01})
        self._betas, self._steps = betas, 0
        for weight in self._weights():
            exact = weight.detach().float().clone()
            self.state[weight] = {"exact": exact, "mean": torch.zeros_like(exact), "square": torch.zeros_like(exact)}

    def _weights(self) -> list[Tensor]:
        return [weight for group in self.param_groups for weight in group["params"]]

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the exact values, and round the weights from them."""
        self._steps += 1
        for group in self.param_groups:
            given = self._given(group)
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                update = _update_at_once() if weight.is_cuda else _update
                exact, mean, square = (state[name].view(-1) for name in ("exact", "mean", "square"))
                update(weight.view(-1), weight.grad.reshape(-1), exact, mean, square, given)

    def _given(self, group: dict[str, Any]) -> Tensor:
        """What `_update` is given, on the device: a number of Python's would be compiled in, anew in every step."""
        mean_kept, square_kept = self._betas
        rate = group["lr"] / (1 - mean_kept**self._steps)
        root = math.sqrt(1 - square_kept**self._steps)
        numbers = torch.tensor([1 - group["lr"] * group["weight_decay"], rate, root, mean_kept, square_kept])
        if group["params"][0].is_cuda:
            return numbers.pin_memory().to(group["params"][0].device, non_blocking=True)
        return numbers

    def state_dict(self) -> dict[str, Any]:
        """The exact weights and both moments, in the order of the weights."""
        return {"steps": self._steps, "weights": [self.state[weight] for weight in self._weights()]}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take them back."""
        self._steps = state_dict["steps"]
        for weight, kept in zip(self._weights(), state_dict["weights"], strict=True):
            for name, value in self.state[weight].items():
                value.copy_(kept[name])
            weight.copy_(self.state[weight]["exact"])
