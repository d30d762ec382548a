"""Readings of the node and of its ranks out of /proc, /sys and the control group.

Files stay open and are read again from their start: opening costs more than reading, and a second is short.
"""

from __future__ import annotations

import os
import re
from typing import Callable, Iterator, Mapping, NamedTuple, Optional

from ..metrics import period_of
from ..system.numbers import whole_number
from ..system.plain_files import read_text
from . import cgroup

_SECTOR_BYTES = 512
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
# Over less time than this the kernel's clock ticks are too coarse for a share of CPU time.
_SHORTEST_S = 0.2
_HIDDEN_PATH = re.compile(r"nvme\d+c\d+n\d+$")


class Scope(NamedTuple):
    """Where a sampler looks; the default is this process on this machine."""

    root: str = "/"
    environ: Optional[Mapping[str, str]] = None
    cpus: Optional[frozenset[int]] = None
    nvml: str = "libnvidia-ml.so.1"

    def path(self, path: str) -> str:
        return os.path.normpath(self.root + "/" + path)

    def variable(self, name: str) -> Optional[str]:
        return os.environ.get(name) if self.environ is None else self.environ.get(name)

    def allowed_cpus(self) -> frozenset[int]:
        return frozenset(os.sched_getaffinity(0)) if self.cpus is None else self.cpus


def numa_node(device: str) -> Optional[int]:
    """Return the NUMA node of a device's folder; -1 in /sys means that none is known."""
    return whole_number(read_text(device + "/numa_node").strip())


class Reading(NamedTuple):
    """Something to ask every `period_s`: `read(now)` gives values by name, or raises and is not asked again."""

    name: str
    period_s: float
    read: Callable[[float], dict[str, float]]


class Files:
    """Open files that are read from their start each time."""

    def __init__(self) -> None:
        self._open: list[int] = []

    def open(self, path: str, size: int = 4096) -> Callable[[], bytes]:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._open.append(fd)
        return lambda: os.pread(fd, size, 0)

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)
        self._open.clear()


class CpuShare:
    """Percent of time spent between two readings of a growing count of seconds."""

    def __init__(self, cores: float = 1.0) -> None:
        self._cores = cores
        self._before: Optional[tuple[float, float]] = None

    def percent(self, used_s: float, now: float) -> Optional[float]:
        """Return the share since the last reading; None at the first, and when too little time has passed to say."""
        if self._before is None:
            self._before = (used_s, now)
            return None
        took_s = now - self._before[1]
        if took_s < _SHORTEST_S:
            return None
        percent = 100.0 * max(0.0, used_s - self._before[0]) / took_s / self._cores
        self._before = (used_s, now)
        return round(percent, 2)


# -- CPU -------------------------------------------------------------------------------------------------------------


def cpu_readings(scope: Scope, files: Files) -> Iterator[Reading]:
    """Yield CPU time of the run's control group, or of its CPUs where it has none, and the machine's load."""
    group = cgroup.find("cpuacct", scope.root, "cpuacct.usage") or cgroup.find("cpu", scope.root, "cpu.stat")
    read = _group_cpu(group, cpu_count(scope), files) if group else machine_cpu(scope, files)
    yield Reading("cpu", period_of("cpu_percent"), read)
    load = files.open(scope.path("/proc/loadavg"), 64)
    yield Reading("load", period_of("load1"), lambda now: {"load1": float(load().split(b" ", 1)[0])})


def cpu_count(scope: Scope) -> float:
    """Return how many CPUs the run may use: those it may be placed on, or fewer where a quota says so."""
    count = float(len(scope.allowed_cpus()))
    group = cgroup.find("cpu", scope.root)
    if group is None:
        return count
    quota = cgroup.lowest(group, ["cpu.cfs_quota_us", "cpu.max"])
    if quota is not None and group.version == 1:
        quota /= cgroup.lowest(group, ["cpu.cfs_period_us", ""]) or 100000.0
    return min(count, quota or count)


def _group_cpu(group: cgroup.Group, cores: float, files: Files) -> Callable[[float], dict[str, float]]:
    share = CpuShare(cores)
    old = group.version == 1
    source = files.open(group.path("cpuacct.usage" if old else "cpu.stat"), 512)

    def read(now: float) -> dict[str, float]:
        text = source()
        # Version 1 is one number of nanoseconds; version 2 begins with "usage_usec N".
        used_s = int(text) / 1e9 if old else int(text.split(None, 2)[1]) / 1e6
        percent = share.percent(used_s, now)
        return {} if percent is None else {"cpu_percent": percent}

    return read


def machine_cpu(scope: Scope, files: Files) -> Callable[[float], dict[str, float]]:
    """Return a reader of the CPU time of all CPUs that this process may use, whoever used it."""
    allowed = scope.allowed_cpus()
    source = files.open(scope.path("/proc/stat"), 65536)
    present = len(re.findall(rb"^cpu\d", source(), re.MULTILINE))
    prefixes = tuple(b"cpu%d " % cpu for cpu in sorted(allowed))
    if len(allowed) >= present:
        # The first line is the sum of all CPUs.
        prefixes = (b"cpu ",)
    share, per_s = CpuShare(), TICKS_PER_S * len(allowed)

    def read(now: float) -> dict[str, float]:
        # The kernel's own count of all time goes for the clock.
        busy, total = _jiffies(source(), prefixes)
        percent = share.percent(busy / per_s, total / per_s)
        return {} if percent is None else {"cpu_percent": percent}

    return read


def _jiffies(text: bytes, prefixes: tuple[bytes, ...]) -> tuple[int, int]:
    busy = total = 0
    for line in text.split(b"\n"):
        if not line.startswith(b"cpu"):
            break
        if line.startswith(prefixes):
            user, nice, system, idle, iowait, irq, softirq, steal = map(int, line.split()[1:9])
            used = user + nice + system + irq + softirq
            busy += used
            total += used + idle + iowait + steal
        if len(prefixes) == 1 and total:
            break
    return busy, total


# -- memory ----------------------------------------------------------------------------------------------------------


def memory_readings(scope: Scope, files: Files) -> Iterator[Reading]:
    """Yield memory of the run's control group, or of the machine where it has none."""
    group = _memory_group(scope)
    read = _group_memory(group, files) if group else machine_memory(scope, files)
    yield Reading("memory", period_of("memory_used_bytes"), read)
    yield Reading(
        "memory limit", period_of("memory_total_bytes"), lambda now: {"memory_total_bytes": float(memory_total(scope))}
    )


def memory_total(scope: Scope) -> int:
    """Return the bytes the run may use: the machine's memory, or the control group's limit where that is lower."""
    with open(scope.path("/proc/meminfo"), "rb") as file:
        total = _kib(file.read(256), b"MemTotal:")
    group = _memory_group(scope)
    if group is None:
        return total
    limit = cgroup.lowest(group, ["memory.limit_in_bytes", "memory.max"])
    return min(total, int(limit or total))


# By version: the file of what is used, and the line of memory.stat with the cache in it.
_MEMORY_OF = {
    1: ("memory.usage_in_bytes", b"\ntotal_inactive_file "),
    2: ("memory.current", b"\ninactive_file "),
}


def _memory_group(scope: Scope) -> Optional[cgroup.Group]:
    return cgroup.find("memory", scope.root, "memory.stat")


def _group_memory(group: cgroup.Group, files: Files) -> Callable[[float], dict[str, float]]:
    name, key = _MEMORY_OF[group.version]
    used = files.open(group.path(name), 32)
    stat = files.open(group.path("memory.stat"), 8192)

    def read(now: float) -> dict[str, float]:
        text = stat()
        at = text.find(key)
        # Page cache that nothing has touched for a while is dropped before a process is killed.
        cache = int(text[at + len(key) : text.index(b"\n", at + 1)]) if at >= 0 else 0
        return {"memory_used_bytes": float(max(0, int(used()) - cache))}

    return read


def machine_memory(scope: Scope, files: Files) -> Callable[[float], dict[str, float]]:
    """Return a reader of the memory in use on the whole machine."""
    source = files.open(scope.path("/proc/meminfo"), 256)

    def read(now: float) -> dict[str, float]:
        text = source()
        return {"memory_used_bytes": float(_kib(text, b"MemTotal:") - _kib(text, b"MemAvailable:"))}

    return read


def _kib(text: bytes, key: bytes) -> int:
    return int(text[text.index(key) + len(key) :].split(None, 1)[0]) * 1024


# -- disks and network -----------------------------------------------------------------------------------------------


def disk_readings(scope: Scope, files: Files) -> Iterator[Reading]:
    """Yield bytes read from and written to whole disks, by the run's control group where the kernel says so.

    Version 1 groups do not see what the kernel writes back later, so there the machine's own count is the truer one.
    """
    disks = _disks(scope)
    group = cgroup.find("io", scope.root, "io.stat")
    if group:
        source, count = files.open(group.path("io.stat"), 16384), _group_disk_bytes
    else:
        source, count = files.open(scope.path("/proc/diskstats"), 65536), _disk_bytes
    # One of the two files names disks, the other numbers them.
    names = {*disks.keys(), *disks.values()}

    def read(now: float) -> dict[str, float]:
        got, put = count(source(), names)
        return {"disk_read_bytes_total": float(got), "disk_written_bytes_total": float(put)}

    if disks:
        yield Reading("disk", period_of("disk_read_bytes_total"), read)


def _disks(scope: Scope) -> dict[bytes, bytes]:
    """Return disks with hardware behind them, name to number.

    Partitions, loops and mappings would count bytes twice, and so would the hidden paths of a multipath NVMe disk.
    """
    disks: dict[bytes, bytes] = {}
    block = scope.path("/sys/block")
    if not os.path.isdir(block):
        return disks
    for name in os.listdir(block):
        if os.path.exists(os.path.join(block, name, "device")) and not _HIDDEN_PATH.match(name):
            with open(os.path.join(block, name, "dev"), "rb") as file:
                disks[name.encode()] = file.read().strip()
    return disks


def _disk_bytes(text: bytes, disks: set[bytes]) -> tuple[int, int]:
    got = put = 0
    for line in text.split(b"\n"):
        fields = line.split(None, 10)
        if len(fields) > 9 and fields[2] in disks:
            got += int(fields[5])
            put += int(fields[9])
    return got * _SECTOR_BYTES, put * _SECTOR_BYTES


def _group_disk_bytes(text: bytes, disks: set[bytes]) -> tuple[int, int]:
    got = put = 0
    for line in text.split(b"\n"):
        number, _, rest = line.partition(b" ")
        if number in disks:
            counts = dict(pair.split(b"=", 1) for pair in rest.split() if b"=" in pair)
            got += int(counts.get(b"rbytes", 0))
            put += int(counts.get(b"wbytes", 0))
    return got, put


def net_readings(scope: Scope, files: Files) -> Iterator[Reading]:
    """Yield bytes of the network interfaces of this network namespace, each counted once."""
    source = files.open(scope.path("/proc/net/dev"), 65536)
    names = [line.partition(b":")[0].strip() for line in source().splitlines()[2:]]
    hardware = {name for name in names if os.path.exists(scope.path("/sys/class/net/" + name.decode() + "/device"))}
    # A container has no hardware of its own, and then what it has is all there is to count.
    counted = hardware or {name for name in names if name != b"lo"}

    def read(now: float) -> dict[str, float]:
        got = put = 0
        for line in source().split(b"\n"):
            name, colon, rest = line.partition(b":")
            if colon and name.strip() in counted:
                fields = rest.split(None, 9)
                got += int(fields[0])
                put += int(fields[8])
        return {"net_received_bytes_total": float(got), "net_sent_bytes_total": float(put)}

    yield Reading("network", period_of("net_received_bytes_total"), read)
