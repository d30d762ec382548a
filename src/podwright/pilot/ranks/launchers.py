"""What starts a node's ranks: the lines of each launcher, and the launchers that run."""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from ..protocol import RANK_NAMES, Order
from ..system.loop import Loop
from ..system.processes import start
from ..system.sealed import own_program
from .logs import LAUNCHER, NodeLog, RankLog
from .shim_protocol import OWN_RANK

MAX_READ_BYTES = 65536
OWN_NAMES = ["PODWRIGHT_SOCKETS", "PODWRIGHT_RANKS_PER_NODE", *OWN_RANK]
"""By which a shim finds its pilot and its number; its command does not see them."""
SLURM_TASKS = ("SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE")
"""What Slurm calls the numbers of a task. A step of ours has one task on each node: a rank has numbers of its own."""


class LaunchFailed(Exception):
    """In words."""


class Go(NamedTuple):
    """What the leader sends every node to start an attempt with."""

    attempt: int
    place: int
    """Which of the nodes that train this one is."""
    master_addr: str
    master_port: int
    sockets: List[str]


def launch_lines(order: Order, go: Go) -> List[Any]:
    """Return [(argv, extra environment)] that start this node's ranks: the one place that knows the launchers."""
    shim = [sys.executable, "-I", "-S", own_program(), "rank", "--", *order.command]
    if order.launcher == "torchrun":
        return [(torchrun_line(order, go, shim), {})]
    if order.launcher == "mpi":
        extra = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(order.world_size)]
        return [([*(order.mpi or mpirun), *shim], extra)]
    first, count = go.place * order.ranks_per_node, order.ranks_per_node
    return [(shim, dict(zip(OWN_RANK, (str(first + local), str(local))))) for local in range(count)]


def torchrun_line(order: Order, go: Go, shim: List[str]) -> List[str]:
    """Return the line of torchrun, of the interpreter the command names, so that both see the same PyTorch."""
    program = order.command[0]
    is_python = re.fullmatch(r"python(3(\.\d+)?)?", os.path.basename(program)) is not None
    torchrun = [program, "-m", "torch.distributed.run"] if is_python else ["torchrun"]
    meeting = f"--local-addr={order.bind}" if order.engine == "local" else "--rdzv-backend=static"
    return [
        *torchrun,
        f"--nnodes={order.nodes}",
        f"--node-rank={go.place}",
        f"--nproc-per-node={order.ranks_per_node}",
        f"--master-addr={go.master_addr}",
        f"--master-port={go.master_port}",
        meeting,
        "--max-restarts=0",
        "--no-python",
        *shim,
    ]


def hidden_names(order: Order) -> List[str]:
    """Return what a rank's command does not see, even where `setup:` or the site sets it."""
    return [*OWN_NAMES, *RANK_NAMES, *SLURM_TASKS] if order.launcher == "plain" else OWN_NAMES


def rank_variables(order: Order, rank: int, binding: Mapping[str, Any]) -> Dict[str, str]:
    """Return the variables of the torchrun contract, whoever started the rank; torchrun itself sets the same.

    A plain process has none: many programs take RANK as the word that others are there.
    """
    bound: Dict[str, str] = binding.get("env", {})
    if order.launcher == "plain":
        return dict(bound)
    node, local = divmod(rank, order.ranks_per_node)
    numbers = {
        "RANK": rank,
        "LOCAL_RANK": local,
        "WORLD_SIZE": order.world_size,
        "LOCAL_WORLD_SIZE": order.ranks_per_node,
        "GROUP_RANK": node,
    }
    if order.engine == "slurm":
        tasks = (rank, local, order.world_size, order.world_size, order.ranks_per_node)
        numbers.update(zip(SLURM_TASKS, tasks))
    return {**{name: str(value) for name, value in numbers.items()}, **bound}


class Launcher(NamedTuple):
    """A process that starts ranks, or is one; what it says itself comes by the pipe."""

    pipe: int
    log: RankLog


class Launchers:
    """The launchers of one node that run, and the log of what they say."""

    def __init__(self, loop: Loop, log: NodeLog) -> None:
        self._loop, self._log = loop, log
        self.pids: Dict[int, Launcher] = {}

    def start(self, argv: List[str], environ: Dict[str, str], cwd: str) -> int:
        """Start one; return its process id, or raise LaunchFailed."""
        try:
            pipe, end = os.pipe()
        except OSError as error:
            raise LaunchFailed(f"the launcher cannot be started: {error.strerror}") from None
        try:
            pid = start(argv, env=environ, cwd=cwd, stdout=end, stderr=end)
            launcher = Launcher(pipe, self._log.rank(LAUNCHER))
        except OSError as error:
            os.close(pipe)
            raise LaunchFailed(f"{argv[0]}: {error.strerror}") from None
        finally:
            os.close(end)
        self.pids[pid] = launcher
        os.set_blocking(pipe, False)
        self._loop.watch(pipe, lambda: self._hear(launcher))
        return pid

    def _hear(self, launcher: Launcher) -> bool:
        data = read_now(launcher.pipe)
        if data:
            launcher.log.feed("e", data)
            return True
        if data == b"":
            self._loop.forget(launcher.pipe)
        return False

    def ended(self) -> Iterator[Tuple[int, RankLog]]:
        """Yield wait status and log of each that ended since the last look."""
        for pid in [pid for pid in self.pids if pid in self._loop.ended]:
            yield self._loop.ended.pop(pid), self._close(pid)

    def _close(self, pid: int) -> RankLog:
        """Hear the last words of a launcher that has ended; return its log, which still has its tail."""
        launcher = self.pids.pop(pid)
        while self._hear(launcher):
            pass
        self._loop.forget(launcher.pipe)
        os.close(launcher.pipe)
        launcher.log.end()
        launcher.log.close()
        return launcher.log

    def close(self) -> None:
        """Close the logs of all after an attempt; none of them runs any more."""
        for pid in list(self.pids):
            self._close(pid)
            self._loop.ended.pop(pid, None)


def read_now(pipe: int) -> Optional[bytes]:
    """Return what is in a pipe: bytes, b"" at the end, None when there is nothing now."""
    try:
        return os.read(pipe, MAX_READ_BYTES)
    except BlockingIOError:
        return None
    except OSError:
        return b""
