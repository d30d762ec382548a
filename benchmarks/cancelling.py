"""What benchmarks of cancelling share: a matrix of ranks that only sleep, counted as this machine sees them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import podwright
from measure import BIN, say

GOAL_RATIO = 2.0
START_S, END_S, LOOK_S = 900.0, 300.0, 5.0
OURS = "podwright cancel"
MARK = f"86399.{os.getpid()}"
"""How long a rank would sleep: no other process of this machine does so, nor the ranks of another benchmark."""
WORKLOAD = """\
name: sweep
command: sleep {mark}
matrix: {{point: [{points}]}}
grace: 10s
resources: {{cpus: 1, memory: 64MiB}}
"""


def write_matrix(path: Path, points: int, more: str = "") -> None:
    """Write the workload of so many points."""
    path.write_text(WORKLOAD.format(mark=MARK, points=", ".join(map(str, range(points)))) + more)


def ranks() -> int:
    """How many ranks there are on this machine now."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            count += path.read_bytes() == f"sleep\0{MARK}\0".encode()
        except OSError:  # it ended meanwhile
            continue
    return count


def until(count: int, most_s: float, look: Callable[[], object] = lambda: None, every_s: float = 0.02) -> None:
    """Wait until there are so many ranks; look at something meanwhile."""
    deadline = time.monotonic() + most_s
    while ranks() != count:
        if time.monotonic() > deadline:
            raise SystemExit(f"{ranks()} ranks instead of {count} after {most_s:.0f} s")
        look()
        time.sleep(every_s)


def measured(
    on: str, path: Path, points: int, cancel: Callable[[podwright.Run], object], clear: Callable[[], object]
) -> float:
    """Seconds from the command to the end of the last rank; starting and clearing away are not counted."""
    run = podwright.run(podwright.load(path), on=on)
    # A client that looks helps a job on that a busy node could not start at once.
    until(points, START_S, run.record, every_s=LOOK_S)
    began = time.perf_counter()
    cancel(run)
    until(0, END_S)
    took = time.perf_counter() - began
    say(f"{took:.2f} s")
    run.wait_at_most(END_S)
    clear()
    return took


def ours(run: podwright.Run) -> None:
    """As a user would; it may be at its last words when the ranks are gone."""
    subprocess.Popen([BIN / "podwright", "cancel", run.id], stderr=subprocess.DEVNULL)
