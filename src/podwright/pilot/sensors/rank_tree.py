"""What the processes of each rank use: CPU time, resident memory, threads."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Iterator, Optional

from ..metrics import period_of
from ..system.numbers import whole_number
from .proc import PAGE_BYTES, TICKS_PER_S, CpuShare, Reading, Scope

# A process that lives for less is counted in its parent's time once it was waited for.
_REFRESH_S = 5.0
# Fields of /proc/PID/stat after the command's name.
_PARENT, _TIMES, _THREADS, _RSS = 1, slice(11, 15), 17, 21


class RankTrees:
    """The process trees of the watched ranks.

    A process keeps the rank it was first found under: one whose parent has died still belongs to it. Only processes
    that are new since the last look are asked for their parent, since on a big machine /proc holds thousands. Ranks
    come and go in another thread than the one that reads, hence the lock.
    """

    def __init__(self, scope: Scope) -> None:
        self._proc = scope.path("/proc")
        self._owners: dict[int, Optional[int]] = {}
        self._stats: dict[int, dict[int, int]] = {}
        self._shares: dict[int, CpuShare] = {}
        self._looked_at = float("-inf")
        self._lock = threading.Lock()

    def watch(self, rank: int, pid: int) -> None:
        """Count the process tree under `pid` for `rank`."""
        with self._lock:
            self._owners[pid] = rank
            self._shares[rank] = CpuShare()
            self._stats.setdefault(rank, {})
            self._take(pid, rank)
            self._looked_at = float("-inf")

    def forget(self) -> None:
        with self._lock:
            for stats in self._stats.values():
                for fd in stats.values():
                    os.close(fd)
            self._owners.clear()
            self._stats.clear()
            self._shares.clear()

    def readings(self) -> Iterator[Reading]:
        yield Reading("ranks", period_of("rank.R.cpu_percent"), self.read)

    def read(self, now: float) -> dict[str, float]:
        values: dict[str, float] = {}
        with self._lock:
            if self._stats and now - self._looked_at >= _REFRESH_S:
                self._look()
                self._looked_at = now
            for rank, stats in self._stats.items():
                values.update(self._read_rank(rank, stats, now))
        return values

    def _read_rank(self, rank: int, stats: dict[int, int], now: float) -> dict[str, float]:
        ticks = pages = threads = 0
        for pid, fd in list(stats.items()):
            try:
                fields = _fields(os.pread(fd, 1024, 0))
            except (OSError, ValueError):
                os.close(stats.pop(pid))
                continue
            # Times of children already waited for are included, so that the sum does not fall when one ends.
            ticks += sum(map(int, fields[_TIMES]))
            threads += int(fields[_THREADS])
            pages += int(fields[_RSS])
        if not stats:
            return {}
        name = "rank.%d." % rank
        values = {name + "memory_bytes": float(pages * PAGE_BYTES), name + "threads": float(threads)}
        percent = self._shares[rank].percent(ticks / TICKS_PER_S, now)
        if percent is not None:
            values[name + "cpu_percent"] = percent
        return values

    def _look(self) -> None:
        """Find the processes that are new, and whose they are."""
        numbers = map(whole_number, os.listdir(self._proc))
        pids = {number for number in numbers if number is not None}
        for gone in self._owners.keys() - pids:
            del self._owners[gone]
        parents = {pid: self._parent(pid) for pid in pids - self._owners.keys()}
        for pid in parents:
            self._owners[pid] = rank = self._owner(pid, parents)
            if rank is not None:
                self._take(pid, rank)

    def _owner(self, pid: int, parents: dict[int, int]) -> Optional[int]:
        seen = set()
        while pid in parents and pid not in seen:
            seen.add(pid)
            pid = parents[pid]
        return self._owners.get(pid)

    def _parent(self, pid: int) -> int:
        try:
            with open("%s/%d/stat" % (self._proc, pid), "rb") as file:
                return int(_fields(file.read(1024))[_PARENT])
        except (OSError, ValueError):
            return 0

    def _take(self, pid: int, rank: int) -> None:
        old = self._stats[rank].pop(pid, None)
        if old is not None:
            os.close(old)
        with suppress(OSError):  # it ended before it could be looked at
            self._stats[rank][pid] = os.open("%s/%d/stat" % (self._proc, pid), os.O_RDONLY | os.O_CLOEXEC)


def _fields(stat: bytes) -> list[bytes]:
    """Return the fields after the command's name, which is in brackets and may itself hold brackets and blanks."""
    return stat[stat.rindex(b")") + 2 :].split()
