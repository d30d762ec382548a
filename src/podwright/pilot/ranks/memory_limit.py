"""The memory that a run asked for on a node, held where no engine holds it.

The kernel does it where a control group for the ranks can be made. Elsewhere their memory is summed up once a second: a
limit of each process would not do, since CUDA maps far more than it uses.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from typing import Callable, Iterable, List, NamedTuple, Optional

from ..protocol import Order
from ..sensors import cgroup
from ..system.loop import Loop
from ..system.plain_files import read_text
from ..system.processes import descendants
from .node_ranks import EXIT_KILLED, RankFailure, Ranks

PERIOD_S = 1.0
_KILLS = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_PSS = re.compile(r"^Pss:\s+(\d+) kB$", re.MULTILINE)


class _Files(NamedTuple):
    """How one version of control groups calls what is needed here."""

    limit: str
    swap: str
    events: str


_FILES = {
    1: _Files("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"),
    2: _Files("memory.max", "memory.swap.max", "memory.events"),
}


class MemoryGroup:
    """A control group of the ranks alone: the pilot outside of it lives to report what happened."""

    def __init__(self, version: int, folder: str) -> None:
        self._files, self._folder = _FILES[version], folder

    @classmethod
    def make(cls, name: str, limit_bytes: int, root: str = "/") -> Optional[MemoryGroup]:
        """Make a group with this limit where this user may; None where that is nowhere."""
        for version, above in cgroup.parents_of_own("memory", root):
            group = cls(version, os.path.join(above, name))
            if group._set_up(limit_bytes):
                return group
        return None

    def _set_up(self, limit_bytes: int) -> bool:
        try:
            os.mkdir(self._folder, 0o755)
        except FileExistsError:
            pass  # of a pilot that was killed
        except OSError:
            return False
        try:
            self._write(self._files.limit, limit_bytes)
        except OSError:
            self.remove()
            return False
        # What was pushed out to disk counts too, where the kernel counts it.
        with suppress(OSError):
            self._write(self._files.swap, limit_bytes if self._files is _FILES[1] else 0)
        return True

    def take(self, pid: int) -> None:
        """Put a process into the group; what it starts from now on is in it too."""
        with suppress(OSError):  # it has ended, or must stay where it is: the sum is looked at all the same
            self._write("cgroup.procs", pid)

    def kills(self) -> int:
        """Return how many of its processes the kernel has killed for want of memory."""
        match = _KILLS.search(read_text(os.path.join(self._folder, self._files.events)))
        return int(match.group(1)) if match else 0

    def remove(self) -> None:
        """Remove the group, which has no process any more."""
        with suppress(OSError):
            os.rmdir(self._folder)

    def _write(self, name: str, number: int) -> None:
        # It is there or not: nothing is made in a folder that is no group.
        file = os.open(os.path.join(self._folder, name), os.O_WRONLY)
        try:
            os.write(file, b"%d" % number)
        finally:
            os.close(file)


class MemoryLimit:
    """Holds the ranks of a node to a limit, and knows when they went beyond it."""

    def __init__(self, limit_bytes: int, group: Optional[MemoryGroup]) -> None:
        self.limit_bytes, self._group = limit_bytes, group
        self._killed = group.kills() if group else 0

    def take(self, pid: int) -> None:
        """Hold a process, and all that it starts, to the limit."""
        if self._group:
            self._group.take(pid)

    def excess(self) -> Optional[int]:
        """Return what all processes beneath this one use, when that is more than the limit."""
        pids = descendants(os.getpid())
        if resident_bytes(pids) <= self.limit_bytes:
            return None
        # What they share was counted for each of them.
        used = proportional_bytes(pids)
        return used if used > self.limit_bytes else None

    def has_killed(self) -> bool:
        """Return whether the kernel killed a process since this was asked last."""
        before, self._killed = self._killed, self._group.kills() if self._group else 0
        return self._killed > before

    def remove(self) -> None:
        """Let go of the control group."""
        if self._group:
            self._group.remove()


class RankMemory:
    """Holds the ranks that one node starts to the memory they asked for; one mpirun starts those of all nodes."""

    def __init__(self, order: Order, node: int, ranks: Ranks, say: Callable[..., None]) -> None:
        self._ranks, self._say = ranks, say
        self._limit_bytes, self._name = order.memory_bytes, f"podwright-{order.run}-n{node}"
        if order.launcher == "mpi" and order.memory_bytes is not None:
            self._limit_bytes = None if node > 0 else order.memory_bytes * order.nodes
        self._limit: Optional[MemoryLimit] = None

    def hold(self, loop: Loop) -> None:
        """Begin to hold them, where they are to be held."""
        if self._limit_bytes is not None:
            self._limit = MemoryLimit(self._limit_bytes, MemoryGroup.make(self._name, self._limit_bytes))
            self._ranks.on_launch = self._limit.take
            loop.every("memory", PERIOD_S, self._look)

    def _look(self) -> None:
        """End the attempt at once: processes that take more and more would take the machine with them."""
        used = self._limit.excess() if self._limit and self._ranks.running else None
        if used is None or self._ranks.failure is not None:
            return
        self._say("seen", what="oom", device="memory", value=used, text=f"the ranks used {used} bytes of memory")
        after_s = round(time.monotonic() - self._ranks.began, 3)
        self._ranks.fail(RankFailure(None, EXIT_KILLED, "SIGKILL", after_s, self._excess_reason(), []))
        self._ranks.kill()

    def explained(self, failure: RankFailure) -> RankFailure:
        """Return a failure with its cause, where that was the kernel, which killed a process for want of memory."""
        if self._limit is None or not self._limit.has_killed():
            return failure
        return failure._replace(why=self._excess_reason())

    def _excess_reason(self) -> str:
        return f"used more memory than the {(self._limit_bytes or 0) >> 20} MiB it had asked for"

    def close(self) -> None:
        """Let go of what holds them."""
        if self._limit:
            self._limit.remove()


def resident_bytes(pids: Iterable[int]) -> int:
    """Return the memory of processes, where what two of them share counts twice."""
    page = os.sysconf("SC_PAGE_SIZE")
    rows: List[List[str]] = [read_text(f"/proc/{pid}/statm").split() for pid in pids]
    return sum(int(row[1]) for row in rows if len(row) > 1) * page


def proportional_bytes(pids: Iterable[int]) -> int:
    """Return the memory of processes, where what some of them share counts once, if the kernel says so."""
    total = 0
    for pid in pids:
        match = _PSS.search(read_text(f"/proc/{pid}/smaps_rollup"))
        total += int(match.group(1)) << 10 if match else resident_bytes([pid])
    return total
