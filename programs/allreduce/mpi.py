"""All-reduce over MPI: checks the sum, and tells the bus bandwidth by message size.

    mpirun -np 4 python mpi.py [--largest-mib 16] [--rounds 5]

Bus bandwidth is what NCCL's tests call so: bytes / time x 2 (n - 1) / n, which does not depend on the number of ranks.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

KIB = 1024


@dataclass(frozen=True)
class Config:
    largest_mib: int
    rounds: int


def parse() -> Config:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest-mib", type=int, default=16, help="largest message (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of each size (default: %(default)s)")
    options = parser.parse_args()
    return Config(options.largest_mib, options.rounds)


def reduce_once(world: MPI.Comm, size_bytes: int) -> float:
    """Seconds of the slowest rank for one all-reduce whose sum is known; ends all ranks when it is wrong."""
    rank, count = world.Get_rank(), world.Get_size()
    mine, total = np.full(size_bytes // 4, rank + 1, np.float32), np.empty(size_bytes // 4, np.float32)
    world.Barrier()
    began = MPI.Wtime()
    world.Allreduce(mine, total)
    took_s = world.allreduce(MPI.Wtime() - began, MPI.MAX)
    if not (total == count * (count + 1) / 2).all():
        print(f"rank {rank}: the sum of {size_bytes} bytes is wrong", file=sys.stderr)
        world.Abort(3)
    return float(took_s)


def main() -> int:
    config, world = parse(), MPI.COMM_WORLD
    rank, count = world.Get_rank(), world.Get_size()
    size = 64 * KIB
    step = 0
    while size <= config.largest_mib * KIB * KIB:
        took_s = min(reduce_once(world, size) for _ in range(config.rounds))
        gbps = size / took_s * 2 * (count - 1) / count / 1e9
        step += 1
        if rank == 0:
            print(f"{size / KIB:10.0f} KiB {took_s * 1e6:10.0f} us {gbps:8.3f} GB/s bus", flush=True)
            print(json.dumps({"podwright": {"step": step, "bus_gbps": round(gbps, 3), "world": count}}), flush=True)
        size *= 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
