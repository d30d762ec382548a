"""Runs that Slurm leaves where they are, until a client that looks helps them on.

One that gave its nodes back is put into the queue by its batch script, on the node that leads. Where that node was gone
and is back before Slurm missed it, the other pilots leave and Slurm believes that the job runs. And a job that a node
could not start is held: most often a controller that was killed starts it again where its older copy is not gone yet.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from podwright.clients.ssh import Reach
from podwright.pilot.protocol import KEY_KIND, KEY_TIME, is_number, parse_line, record_folders
from podwright.runs import RunFolder
from podwright.runs.events import CancelAsked
from podwright.runs.typed import grace_s_of

CHANCE_S = 20.0
"""How long Slurm's controller, which finds a lost batch script by itself, is left to it."""
DEAF_S = 60.0
"""Beyond its grace, how long a cancelled run may take to end by itself."""
TAIL_BYTES = 16 << 10
RELEASE = """\
while [ "$#" -gt 1 ]; do
    for turn in 1 2 3; do
        mkdir "$2/released.$turn" 2>/dev/null || continue
        scontrol release "$1"
        break
    done
    shift 2
done
exit 0
"""
"""Slurm drains the node that could not start a job, so that it goes to another: three times, whoever looks."""
REQUEUE = """\
while [ "$#" -gt 1 ]; do
    [ -e "$2" ] || scontrol requeue "$1"
    shift 2
done
exit 0
"""
"""Not where Slurm has done so meanwhile, and the run has begun again: its record tells that later than this folder."""


def stranded_start(folder: RunFolder) -> int | None:
    """Return the number of the last start if its pilots left, and its leader was not heard of since; else None."""
    starts = list(record_folders(str(folder.record_path)))
    last = max((restart for _, restart, _ in starts), default=None)
    paths = {node: Path(path, "events.jsonl") for node, restart, path in starts if restart == last}
    leader = paths.pop(0, None)
    given_back = [time_s for time_s, kind in map(_last_event, paths.values()) if kind == "given_back"]
    if leader is None or not given_back or time.time() - max(given_back) < CHANCE_S:
        return None
    heard, kind = _last_event(leader)
    if kind in ("given_back", "end", "fenced") or heard >= max(given_back):
        return None
    return last


def put_back(reach: Reach, jobs: Mapping[str, str]) -> None:
    """Put jobs into the queue again, each by the folder that its run's next start makes on the cluster."""
    _run_each(reach, REQUEUE, jobs)


def is_overdue(folder: RunFolder) -> bool:
    """Return whether a run was cancelled, and its pilots have not ended it within its grace."""
    asked = [event.time for event in folder.client_events() if isinstance(event, CancelAsked)]
    return bool(asked) and time.time() - asked[0] > grace_s_of(folder.asked.workload) + DEAF_S


def release(reach: Reach, jobs: Mapping[str, str]) -> None:
    """Let held jobs go on, by the folder of their run on the cluster."""
    _run_each(reach, RELEASE, jobs)


def _run_each(reach: Reach, script: str, jobs: Mapping[str, str]) -> None:
    rows = [(job, folder) for folder, job in jobs.items()]
    if rows:
        reach.call(["sh", "-c", script, "podwright", *chain.from_iterable(rows)])


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
