"""File systems of the network: whether each answers, how much room it has, and how long NFS takes for an operation."""

from __future__ import annotations

import os
import re
import time
from typing import Callable, Dict, Iterator, List, Tuple

from ...pilot.sensors.proc import Scope
from ...pilot.system.plain_files import read_text
from ..page import Labels, MetricSample

_KINDS = re.compile(r"nfs4?|lustre|gpfs|beegfs|wekafs|ceph|cifs|fuse\.(?!portal|gvfsd|lxcfs).+")
_MOUNT = re.compile(r"device (\S+) mounted on (\S+) with fstype (nfs4?)\b")
# name: operations, transmissions, timeouts, bytes sent, bytes received, queue ms, round trip ms, whole ms
_OPERATION = re.compile(r"\s+(READ|WRITE|GETATTR|OPEN|COMMIT): (\d+) \d+ \d+ \d+ \d+ \d+ (\d+) (\d+)")
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MAX_BYTES, _MAX_MOUNTS = 4 << 20, 50


def network_mounts(scope: Scope) -> List[Tuple[str, str]]:
    """Return mount point and kind of every file system that lies elsewhere."""
    found: Dict[str, str] = {}
    for line in read_text(scope.path("/proc/mounts"), _MAX_BYTES).splitlines():
        words = line.split()
        if len(words) > 2 and _KINDS.fullmatch(words[2]):
            found[_plain(words[1])] = words[2]
    return sorted(found.items())[:_MAX_MOUNTS]


def mount_reader(scope: Scope, mount: str, kind: str) -> Callable[[float], List[MetricSample]]:
    """Return what asks one file system for its room: where that hangs, only this sensor does."""
    labels: Labels = (("mountpoint", mount), ("fstype", kind))

    def read(now: float) -> List[MetricSample]:
        began = time.monotonic()
        room = os.statvfs(scope.path(mount))
        return [
            MetricSample("podwright_storage_answer_seconds", labels, round(time.monotonic() - began, 6)),
            MetricSample("podwright_storage_bytes", labels, float(room.f_blocks * room.f_frsize)),
            MetricSample("podwright_storage_free_bytes", labels, float(room.f_bavail * room.f_frsize)),
        ]

    return read


def nfs_samples(scope: Scope) -> Iterator[MetricSample]:
    """Yield how many operations of each kind NFS did, and how long they took from when a program asked."""
    mount = ""
    for line in read_text(scope.path("/proc/self/mountstats"), _MAX_BYTES).splitlines():
        if line.startswith("device "):
            begin = _MOUNT.match(line)
            mount = _plain(begin[2]) if begin else ""
            continue
        operation = _OPERATION.match(line) if mount else None
        if operation is not None:
            labels: Labels = (("mountpoint", mount), ("operation", operation[1].lower()))
            yield MetricSample("podwright_storage_operations_total", labels, float(operation[2]))
            yield MetricSample("podwright_storage_operation_seconds_total", labels, int(operation[4]) / 1000)


def _plain(path: str) -> str:
    """Return a path as it is: the kernel writes blanks by their number."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), path)
