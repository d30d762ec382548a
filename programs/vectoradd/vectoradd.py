"""Adds two vectors on every rank's device and checks each sum: does the GPU that a run was given work at all?

    python programs/vectoradd/vectoradd.py
    podwright run examples/vectoradd.yaml

Ends with 3 when a sum is wrong, and tells the bandwidth of the device's memory. `--device cuda` fails where no GPU is.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kit.options import DEVICES, count_of, option, read_settings
from kit.tell import Teller
from kit.world import World, add_up, enter, leave

MIB = 1024**2
MOVED = 3
"""An addition reads two vectors and writes one."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What to add."""

    mib: int = option(64, count_of, "of each vector")
    rounds: int = option(20, count_of, "additions to time")
    device: str = option("auto", str, "auto is cuda where there is a GPU", DEVICES)


def add(config: Config, world: World) -> tuple[int, float]:
    """Sums that are wrong, and bytes a second."""
    first = torch.arange(config.mib * MIB // 4, dtype=torch.int32, device=world.device)
    second = first.flip(0)
    total = torch.empty_like(first)
    torch.add(first, second, out=total)
    wrong = int((total != len(first) - 1).sum())
    began = time.perf_counter()
    for _ in range(config.rounds):
        torch.add(first, second, out=total)
    if world.on_gpu:
        torch.cuda.synchronize(world.device)
    return wrong, MOVED * config.mib * MIB * config.rounds / (time.perf_counter() - began)


def main(arguments: Sequence[str]) -> int:
    """Add as the command line says; returns the exit code."""
    config = read_settings(Config, "Add two vectors and check the sum.", arguments)
    if config.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "there is no GPU here that PyTorch can use\n\nhint: nvidia-smi shows those that the driver knows"
        )
    world = enter(config.device)
    wrong, bytes_per_s = add(config, world)
    all_wrong = int(add_up(torch.tensor(wrong)))
    teller = Teller(world.leads, 0.0)
    teller.warn(f"rank {world.rank}: {wrong} sums are wrong" if wrong else f"rank {world.rank}: all sums are right")
    teller.values({"step": 1, "wrong": all_wrong, "memory_gbps": bytes_per_s / 1e9, "world": world.size})
    teller.line("FAILED" if all_wrong else "PASSED")
    leave()
    return 3 if all_wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
