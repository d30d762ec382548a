"""FSDP2: each rank holds a part of every weight, and a checkpoint is whole all the same.

A checkpoint has the form that one rank alone writes, so that any number of ranks go on from it, or none: `torch.load`
reads it. To make it, all ranks put their parts together, one tensor after another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from .world import World


def shard(net: nn.Module, blocks: Iterable[nn.Module], world: World) -> None:
    """Spread the weights of each block, and the rest, over all ranks; a rank alone has all of them."""
    if not dist.is_initialized():
        return
    mesh = init_device_mesh(world.device.type, (world.size,))
    for block in blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(net, mesh=mesh)


def is_sharded(net: nn.Module) -> bool:
    """Whether the ranks hold parts of it."""
    return isinstance(net, FSDPModule)


def whole_state(net: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Any, Any]:
    """The states of both, with whole tensors; every rank takes part."""
    return _whole(net.state_dict()), _whole(optimizer.state_dict())


def load_whole(net: nn.Module, optimizer: torch.optim.Optimizer, model: Any, state: Any) -> None:
    """Take whole states back, each rank its part."""
    if is_sharded(net):
        own = net.state_dict()
        model = {name: _part(value, own[name]) for name, value in model.items()}
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        state = {**state, "state": {n: _parts(values, weights[n]) for n, values in state["state"].items()}}
    net.load_state_dict(model)
    optimizer.load_state_dict(state)


def _whole(value: Any) -> Any:
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, dict):
        return {key: _whole(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [_whole(inside) for inside in value]
    return value


def _parts(values: dict[str, Any], weight: Tensor) -> dict[str, Any]:
    """What an optimizer knows of a weight; what has its shape is spread as it is."""
    return {name: _part(value, weight) if _is_like(value, weight) else value for name, value in values.items()}


def _is_like(value: Any, weight: Tensor) -> bool:
    return isinstance(value, Tensor) and value.shape == weight.shape


def _part(value: Tensor, like: Tensor) -> Tensor:
    if not isinstance(like, DTensor):
        return value
    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements)
