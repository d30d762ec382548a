"""The end of a run, written once, and how any later copy of it finds out before it starts a rank.

Final is `succeeded` and `failed`, and `terminated` where a user cancelled the run. A run that was preempted, whose
slice of time was over, or that gave its nodes back goes on.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Callable, Optional, Sequence

from ..protocol import (
    KEY_EPOCH,
    KEY_KIND,
    MAX_READ_BYTES,
    Epoch,
    leader_events,
    parse_line,
    parse_lines,
    read_piece,
    record_name,
    rows_of,
)
from ..system.plain_files import read_whole

ENDS = ("succeeded", "failed", "terminated")
NAME = "ended"
"""In the folder of the leases: `{"state": ...}`, created exclusively by the leader before it says `end`."""


def final(state: object, cancel_marks: Sequence[str]) -> Optional[str]:
    """Return the state of an `end` when nothing may follow it, else None."""
    if state in ("succeeded", "failed"):
        return str(state)
    if state == "terminated" and any(map(os.path.exists, cancel_marks)):
        return str(state)
    return None


def read_ended(lease: str) -> Optional[str]:
    """Return the state that the end was claimed with; a file without one was never finished, and claims nothing."""
    try:
        row = parse_line(read_whole(os.path.join(lease, NAME))) or {}
    except OSError:
        return None
    return str(row["state"]) if row.get("state") in ENDS else None


def write_ended(lease: str, state: str, make_room: Callable[[], None] = lambda: None) -> str:
    """Claim the end with this state; return the state that counts, which another copy may have claimed before.

    A disk without room, where none can be made either, keeps nobody from ending: the `end` in the record is then all
    there is.
    """
    data = json.dumps({"state": state}).encode() + b"\n"
    path = os.path.join(lease, NAME)
    try:
        os.makedirs(lease, mode=0o700, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return read_ended(lease) or state
    except OSError:
        return state
    if not _is_written(file, data):
        make_room()
        _is_written(file, data)
    os.close(file)
    return state


def _is_written(file: int, data: bytes) -> bool:
    with suppress(OSError):
        whole = os.pwrite(file, data, 0) == len(data)
        os.fsync(file)
        return whole
    return False


def final_state(lease: str, record: str, cancel_marks: Sequence[str]) -> Optional[str]:
    """Return how a run ended for good, or None: by the claim, else by what its leaders wrote last.

    Pilots of version 0.1 claimed no end, and one whose disk was full could not.
    """
    claimed = read_ended(lease)
    if claimed is not None:
        return claimed
    last = None
    for path in leader_events(record):
        for row in rows_of(path):
            if row.get(KEY_KIND) == "end":
                last = row.get("state")
    return final(last, cancel_marks)


def ranks_ended_well(record: str, node: int, restart: int, epoch: Epoch, count: int) -> bool:
    """Return whether a node has written that so many ranks, all it has, ended well in an attempt.

    It may be cut off from its leader, or without power, before it could say so; the end of a long file tells enough.
    """
    path = os.path.join(record, record_name(node, restart), "events.jsonl")
    try:
        size = os.stat(path).st_size
    except OSError:
        return False
    data, _ = read_piece(path, max(0, size - MAX_READ_BYTES))
    rows = [row for row in parse_lines(data) if row.get(KEY_KIND) == "rank_end" and row.get(KEY_EPOCH) == list(epoch)]
    return len({row.get("rank") for row in rows}) == count and all(row.get("code") == 0 for row in rows)
