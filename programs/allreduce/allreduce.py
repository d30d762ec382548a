"""All-reduce over PyTorch's ranks: checks the sum, and tells its time and bandwidth by message size.

    torchrun --nproc-per-node 8 programs/allreduce/allreduce.py --largest-mib 1024         NCCL on GPUs
    torchrun --nproc-per-node 2 programs/allreduce/allreduce.py --device cpu               gloo on any machine
    podwright run examples/allreduce-torch.yaml

Columns are those of NCCL's own tests. Bus bandwidth is bytes / time x 2 (n - 1) / n, which does not depend on how
many ranks there are: it can be compared with what a link can carry. Times are those of the slowest rank.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from kit.options import DEVICES, count_of, option, read_settings
from kit.tell import Teller
from kit.world import World, enter, leave

FLOAT_BYTES = 4
SMALLEST_BYTES = 1024
GROWTH = 4
HEADING = (
    f"#{'size':>12}{'count':>13}{'type':>8}{'redop':>8}{'root':>6}{'time':>11}{'algbw':>9}{'busbw':>9}{'#wrong':>8}"
)
UNITS = f"#{'(B)':>12}{'(elements)':>13}{'':>22}{'(us)':>11}{'(GB/s)':>9}{'(GB/s)':>9}"


@dataclass(frozen=True, kw_only=True)
class Config:
    """What to measure."""

    largest_mib: int = option(16, count_of, "largest message")
    rounds: int = option(20, count_of, "of each size")
    device: str = option("auto", str, "auto is cuda where there is a GPU", DEVICES)


@dataclass(frozen=True)
class Row:
    """The all-reduce of one size."""

    size_bytes: int
    seconds: float
    wrong: int
    ranks: int

    @property
    def algorithm_gbps(self) -> float:
        """Bytes that were reduced, by time."""
        return self.size_bytes / self.seconds / 1e9

    @property
    def bus_gbps(self) -> float:
        """What each rank sends and receives, by time; nothing goes anywhere where one is alone."""
        return self.algorithm_gbps * 2 * (self.ranks - 1) / self.ranks

    def __str__(self) -> str:
        count = self.size_bytes // FLOAT_BYTES
        speed = f"{self.seconds * 1e6:11.2f}{self.algorithm_gbps:9.3f}{self.bus_gbps:9.3f}"
        return f"{self.size_bytes:>12}{count:>13}{'float':>8}{'sum':>8}{-1:>6}{speed}{self.wrong:>8}"


def reduce(tensor: Tensor) -> None:
    """The sum over all ranks, in place; one that is alone has it."""
    if dist.is_initialized():
        dist.all_reduce(tensor)


def time_of(world: World, act: Callable[[], None], rounds: int) -> float:
    """Seconds of one round; by the GPU's own clock, where there is one."""
    act()
    if world.on_gpu:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        first.record()
    began = time.perf_counter()
    for _ in range(rounds):
        act()
    if not world.on_gpu:
        return (time.perf_counter() - began) / rounds
    last.record()
    last.synchronize()
    return float(first.elapsed_time(last)) / 1000 / rounds


def measure(world: World, size_bytes: int, rounds: int) -> Row:
    """Check one sum that is known, then time many."""
    count = size_bytes // FLOAT_BYTES
    numbers = torch.full((count,), float(world.rank + 1), device=world.device)
    reduce(numbers)
    wrong = (numbers != world.size * (world.size + 1) / 2).sum()
    numbers.zero_()  # sums of sums would grow beyond all numbers
    slowest = torch.tensor(time_of(world, lambda: reduce(numbers), rounds), dtype=torch.float64)
    if dist.is_initialized():
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
    reduce(wrong)
    return Row(size_bytes, float(slowest), int(wrong), world.size)


def sizes(largest_mib: int) -> Iterator[int]:
    """Bytes of the messages, each four times the one before."""
    size = SMALLEST_BYTES
    while size <= largest_mib * 1024**2:
        yield size
        size *= GROWTH


def main(arguments: Sequence[str]) -> int:
    """Measure as the command line says; 3 when a sum was wrong."""
    config = read_settings(Config, "Time all-reduce by message size.", arguments)
    world = enter(config.device)
    teller = Teller(world.leads, 0.0)
    teller.line(HEADING)
    rows: list[Row] = []
    for step, size_bytes in enumerate(sizes(config.largest_mib), 1):
        row = measure(world, size_bytes, config.rounds)
        rows.append(row)
        teller.line(str(row))
        teller.values({"step": step, "size_bytes": size_bytes, "bus_gbps": row.bus_gbps, "world": world.size})
    teller.values({"step": len(rows), "allreduce_s": sum(row.seconds for row in rows) * config.rounds})
    wrong = sum(row.wrong for row in rows)
    teller.line(f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}")
    teller.line(f"# Avg bus bandwidth    : {sum(row.bus_gbps for row in rows) / len(rows):.6g}")
    leave()
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
