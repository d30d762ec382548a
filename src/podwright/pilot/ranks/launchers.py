"""The lines that start a node's ranks, launcher by launcher."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, List, NamedTuple

from ..protocol import Order
from ..system.sealed import own_program
from .rank_number import OWN_RANK


class Go(NamedTuple):
    """What the leader tells every node to start an attempt with."""

    attempt: int
    master_addr: str
    master_port: int
    sockets: List[str]


def launch_lines(order: Order, node: int, go: Go) -> List[Any]:
    """Return [(argv, extra environment)] that start this node's ranks: the one place that knows the launchers."""
    shim = [sys.executable, "-I", "-S", own_program(), "rank", "--", *order.command]
    if order.launcher == "torchrun":
        return [(torchrun_line(order, node, go, shim), {})]
    if order.launcher == "mpi":
        extra = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(order.world_size)]
        return [([*(order.mpi or mpirun), *shim], extra)]
    first, count = node * order.ranks_per_node, order.ranks_per_node
    return [(shim, dict(zip(OWN_RANK, (str(first + local), str(local))))) for local in range(count)]


def torchrun_line(order: Order, node: int, go: Go, shim: List[str]) -> List[str]:
    """Return the line of torchrun, of the interpreter the command names, so that both see the same PyTorch."""
    program = order.command[0]
    is_python = re.fullmatch(r"python(3(\.\d+)?)?", os.path.basename(program)) is not None
    torchrun = [program, "-m", "torch.distributed.run"] if is_python else ["torchrun"]
    meeting = f"--local-addr={order.bind}" if order.engine == "local" else "--rdzv-backend=static"
    return [
        *torchrun,
        f"--nnodes={order.nodes}",
        f"--node-rank={node}",
        f"--nproc-per-node={order.ranks_per_node}",
        f"--master-addr={go.master_addr}",
        f"--master-port={go.master_port}",
        meeting,
        "--max-restarts=0",
        "--no-python",
        *shim,
    ]
