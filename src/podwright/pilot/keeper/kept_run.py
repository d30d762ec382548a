"""A run that is kept on this machine: its order, its lock, how it ended, and the run that it comes after."""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any, Dict, List, Optional

from ..life.lease import Leases
from ..protocol import EXIT_STOPPED, KEY_KIND, KEY_TIME, Order, leader_events, parse_order, rows_of
from ..system.journal import CLOSE_S, MAX_WAITING_EVENTS, JsonLines
from ..system.loop import STOPPING, Loop
from ..system.plain_files import read_whole

STOPPED: Dict[str, Any] = {"state": "terminated", "reason": "stopped", "code": EXIT_STOPPED}


class KeptRun:
    """One run: its order, its folder and the lock that says it is cared for."""

    def __init__(self, order_file: str) -> None:
        self.order_file = os.path.abspath(order_file)
        self.job = os.path.dirname(self.order_file)
        self.order_data = read_whole(self.order_file)
        self.order: Order = parse_order(self.order_data, self.order_file)
        self.folder = os.path.normpath(os.path.join(self.job, self.order.folder))
        self.lock = os.open(os.path.join(self.folder, "keeper.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        """Take the lock; return False when another keeper has it."""
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        os.ftruncate(self.lock, 0)
        os.pwrite(self.lock, f"{os.getpid()}\n".encode(), 0)
        return True

    @property
    def is_cancelled(self) -> bool:
        return os.path.exists(os.path.join(self.folder, "cancelled"))

    def end(self, now: float, verdict: Dict[str, Any]) -> None:
        """Write the end of a run that never started."""
        lines = JsonLines(os.path.join(self.folder, "engine.jsonl"), MAX_WAITING_EVENTS)
        lines.write({KEY_TIME: round(now, 3), KEY_KIND: "end", **verdict})
        lines.close(CLOSE_S)
        self.let_go()

    def let_go(self) -> None:
        """Give the lock back: what has ended needs nobody, though other runs of this keeper go on."""
        os.close(self.lock)

    def is_over(self) -> bool:
        return any(row.get(KEY_KIND) == "end" for row in self._rows())

    def orphan_slot(self) -> Optional[int]:
        """Return the slot that pilots of this run still fill whose keeper is dead, or None where there are none."""
        leases = Leases(os.path.join(self.folder, "lease"), "")
        if leases.ended() is not None or leases.rival() is None:
            return None
        slots = [row.get("place") for row in self._rows() if row.get(KEY_KIND) == "kept"]
        numbers = [slot for slot in slots if isinstance(slot, int)]
        return (numbers or [0])[-1]

    def _rows(self) -> List[Dict[str, Any]]:
        return list(rows_of(os.path.join(self.folder, "engine.jsonl")))


def point_folders(folder: str) -> List[str]:
    """Return the folders of a run's points, or its own when it has none."""
    try:
        count = int(json.loads(read_whole(os.path.join(folder, "run.json"))).get("points", 0))
    except (OSError, ValueError):
        count = 0
    return [f"{os.path.normpath(folder)}-{point + 1}" for point in range(count)] or [folder]


def succeeded(folder: str) -> Optional[bool]:
    """Return whether the run in `folder` succeeded; None while it is not over. Keeper, pilots or a client says so."""
    events = leader_events(os.path.join(folder, "record"))
    for path in [os.path.join(folder, "engine.jsonl"), *events, os.path.join(folder, "client.jsonl")]:
        for row in rows_of(path):
            if row.get(KEY_KIND) in ("end", "lost"):
                return row.get("state") == "succeeded"
    return None


def wait_for(folder: str, waiting: List[KeptRun], loop: Loop) -> Optional[Dict[str, Any]]:
    """Wait until the run in `folder` is over; return None when it succeeded, else what becomes of the runs after it."""
    name = os.path.basename(os.path.normpath(folder))
    failed = {"state": "failed", "reason": f"{name}, which it comes after, did not succeed", "code": None}
    while True:
        ends = [succeeded(point) for point in point_folders(folder)]
        if all(ends):
            return None
        if None not in ends:
            return failed
        if loop.turn(0.5) & STOPPING or all(run.is_cancelled for run in waiting):
            return STOPPED
