"""Processes that a lab started: known by pid and start time, so that no other process is ever taken for one."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

_DEAD = frozenset("ZX")


def born(pid: int) -> int | None:
    """Gives when a process started, in ticks since the machine did; None when it has ended."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in _DEAD else int(rest[18])


def marked(path: Path) -> int | None:
    """Gives the pid that a mark (`PID START`) names, while that very process lives."""
    try:
        pid, start = map(int, path.read_text().split())
    except (OSError, ValueError):
        return None
    return pid if born(pid) == start else None


def namespace(pid: int) -> str:
    """Names a process's pid namespace; empty when it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def running(firsts: Iterable[int]) -> dict[int, dict[str, list[int]]]:
    """Gives what runs beside each process 1, by program name, in one look at the whole process table."""
    owner = {namespace(pid): pid for pid in firsts}
    owner.pop("", None)
    found: dict[int, dict[str, list[int]]] = {pid: defaultdict(list) for pid in owner.values()}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names only, and there may be thousands
        if entry.isdigit() and (first := owner.get(namespace(int(entry)))) and born(int(entry)) is not None:
            found[first][_program(entry)].append(int(entry))
    return found


def _program(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def kill(pid: int) -> None:
    """Ends a process at once; one that has ended already is no error."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def until(true: Callable[[], bool], timeout_s: float, every_s: float = 0.05) -> bool:
    """Waits for something to become true; says whether it did in time."""
    end = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True
