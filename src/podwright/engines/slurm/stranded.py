"""Runs that gave their nodes back while nobody was left to put the job back into the queue.

The batch script does that, on the node that leads. Where that node was gone and is back before Slurm missed it, the
other pilots leave and Slurm believes that the job runs: the next client that looks puts it back.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from podwright.pilot.protocol import KEY_KIND, KEY_TIME, is_number, parse_line, record_folders
from podwright.runs import RunFolder

CHANCE_S = 60.0
"""How long Slurm's controller, which finds a lost batch script by itself, is left to it."""
TAIL_BYTES = 16 << 10


def is_stranded(folder: RunFolder) -> bool:
    """Return whether the last start of a run has pilots that left, and a leader that was not heard of since."""
    starts = list(record_folders(str(folder.record_path)))
    last = max((restart for _, restart, _ in starts), default=None)
    paths = {node: Path(path, "events.jsonl") for node, restart, path in starts if restart == last}
    leader = paths.pop(0, None)
    given_back = [time_s for time_s, kind in map(_last_event, paths.values()) if kind == "given_back"]
    if leader is None or not given_back or time.time() - max(given_back) < CHANCE_S:
        return False
    heard, kind = _last_event(leader)
    return kind not in ("given_back", "end", "fenced") and heard < max(given_back)


def _last_event(path: Path) -> tuple[float, str]:
    """Return when a pilot said its last that tells how it went, and what; of one that said nothing, long ago."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return 0.0, ""
    for line in reversed(lines):
        row = parse_line(line)
        if row and is_number(row.get(KEY_TIME)):
            return float(row[KEY_TIME]), str(row.get(KEY_KIND))
    return 0.0, ""
