"""The contain role: runs podman for one node. Signals go to the pilot inside, nothing of the container outlives it.

It holds what podman leaves beneath nobody: without it a container would belong to the keeper, and the end of one node
would be taken for the end of all. podman's own way to pass signals on loses those that come while it starts.
"""

from __future__ import annotations

import os
import time
from typing import List, Set

from ..system.loop import WATCHED, Loop
from ..system.prctl import adopt_orphans
from ..system.processes import descendants, exit_facts, kill_tree, send, start

LEAVE_S = 10.0
NOT_STARTED = (125, 126, 127)
"""As podman says that there is no container; the first of them stands for all."""


def main(argv: List[str]) -> int:
    """Run the command that starts the container; return the exit code of the pilot inside."""
    order_file, command = argv[0], argv[1:]
    loop = Loop()
    waiting: Set[int] = set()
    loop.catch_signals()
    adopt_orphans()
    child = start(command)
    while child not in loop.ended:
        waiting |= loop.turn(0.05 if waiting else 1.0) & set(WATCHED)
        if waiting:
            waiting = _pass_on(waiting, order_file)
    code, killed = exit_facts(loop.ended.pop(child))
    leave_by = time.monotonic() + LEAVE_S
    while not killed and descendants(os.getpid()) and time.monotonic() < leave_by:
        loop.turn(0.05)
    kill_tree(os.getpid())
    return NOT_STARTED[0] if code in NOT_STARTED else code


def _pass_on(signals: Set[int], order_file: str) -> Set[int]:
    """Send signals to the pilot inside; return those that wait until there is one."""
    pilots = [pid for pid in descendants(os.getpid()) if _is_pilot(pid, order_file)]
    if not pilots:
        return signals
    for number in signals:
        send(pilots[0], number)
    return set()


def _is_pilot(pid: int, order_file: str) -> bool:
    """Return whether a process is the pilot itself: podman's own names the order too, but as words for a shell."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read().split(b"\0")
    except OSError:
        return False
    return arguments[-3:] == [b"node", os.fsencode(order_file), b""]
