"""Processes that a lab started: known by pid and start time, so that no other process is ever taken for one."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from podwright.pilot.protocol import whole_number

PATIENCE_S = 120.0
"""For what must come, on a machine that does other things too."""
_DEAD = frozenset("ZX")
_STARTERS = frozenset({b"sh", b"/bin/sh", b"unshare", b"nsenter"})


def born(pid: int) -> int | None:
    """Return when a process started, in ticks since the machine did; None when it has ended."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    if state in _DEAD:
        return None
    return int(rest[18])


def marked(path: Path) -> int | None:
    """Return the pid that a mark (`PID START`) names, while that very process lives."""
    try:
        pid, start = map(int, path.read_text().split())
    except (OSError, ValueError):
        return None
    return pid if born(pid) == start else None


def namespace(pid: int) -> str:
    """Name a process's pid namespace; empty when it has ended."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return ""


def running(firsts: Iterable[int]) -> dict[int, dict[str, list[int]]]:
    """Return what runs beside each process 1, by program name, in one look at the whole process table."""
    owner = {namespace(pid): pid for pid in firsts}
    owner.pop("", None)
    beside: dict[int, dict[str, list[int]]] = {pid: defaultdict(list) for pid in owner.values()}
    for pid in _all():
        first = owner.get(namespace(pid))
        if first is not None and born(pid) is not None:
            beside[first][_program(pid)].append(pid)
    return beside


def running_scripts(scripts: Sequence[str]) -> list[int]:
    """Return the shells that run one of these scripts, and what is about to become one."""
    wanted = {script.encode() for script in scripts}
    commands = {pid: _command(pid) for pid in _all()}
    return [pid for pid, command in commands.items() if command[0] in _STARTERS and wanted & set(command)]


def _all() -> list[int]:
    """Return all processes there are, and those that have ended and are not reaped yet."""
    entries = os.listdir("/proc")  # noqa: PTH208 - names only, and there may be thousands
    numbers = map(whole_number, entries)
    return [number for number in numbers if number is not None]


def _command(pid: int) -> list[bytes]:
    """Return the command line of a process; one empty word when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def kill(pid: int) -> None:
    """End a process at once; one that has ended already is no error."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_all(find: Callable[[], Iterable[int]]) -> None:
    """End whatever is found, again and again until nothing is, and wait until all of it is gone.

    Process 1 of a namespace is hard to see while it ends, which lasts until all that run in the namespace have ended:
    what was killed once is waited for.
    """
    victims: dict[int, int | None] = {}

    def gone() -> bool:
        pids = list(find())
        for pid in pids:
            victims[pid] = born(pid)
            kill(pid)
        return not pids and all(start is None or born(pid) != start for pid, start in victims.items())

    until(gone, every_s=0.01)


def until(true: Callable[[], bool], timeout_s: float = PATIENCE_S, every_s: float = 0.05) -> bool:
    """Wait for something to become true; say whether it did in time."""
    end = time.monotonic() + timeout_s
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True
