"""A run that tells 1,000,000 results against one that tells 1,000: the client's memory, and the time to the end.

    python benchmarks/results_scale.py [--pairs 5] [--json OUT] [--many 1000000]

One rank prints a line with a step and a loss for each result, as fast as it can. The client is `podwright run`, which
follows the run, seals its folder and writes the report; its memory is the kernel's own account of its peak.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from measure import BIN, Row, bootstrap, compare, conclude, environment, machine, parser, say, start

FEW = 1_000
GOAL_MB = 30.0
PROGRAM = """\
import sys

for step in range(int(sys.argv[1])):
    print('{"podwright": {"step": %d, "loss": %.6f}}' % (step, 1 / (step + 1)))
"""
WORKLOAD = """\
name: tell
code: code
command: python tell.py {count}
"""


def measured(words: list[str], env: Mapping[str, str], folder: Path) -> tuple[float, float]:
    """Return the seconds and the peak megabytes of a command of ours that must succeed."""
    began = time.perf_counter()
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen([str(BIN / "podwright"), *words], cwd=folder, env=env, stdout=said, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "said").read_text(errors="replace"))
    return time.perf_counter() - began, usage.ru_maxrss / 1000


def prepare(folder: Path, counts: list[int]) -> None:
    """Write the program and a workload for each number of results."""
    (folder / "code").mkdir()
    (folder / "code" / "tell.py").write_text(PROGRAM)
    for count in counts:
        (folder / f"{count}.yaml").write_text(WORKLOAD.format(count=count))


def main() -> int:
    """Run both in turn."""
    made = parser("A run of many results against one of few.", pairs=5)
    made.add_argument("--many", type=int, default=1_000_000, help="results of the larger run (default: %(default)s)")
    options = made.parse_args()
    facts = machine()
    counts = [FEW, options.many]
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    peaks: dict[int, list[float]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as name:
        folder = Path(name)
        prepare(folder, counts)
        for number in range(options.pairs):
            for count in counts[:: -1 if number % 2 else 1]:
                took, peak = measured(["run", f"{count}.yaml"], environment(folder / "home"), folder)
                seconds[count].append(took)
                peaks[count].append(peak)
            latest = "  ".join(f"{count}: {peaks[count][-1]:.1f} MB, {seconds[count][-1]:.1f} s" for count in counts)
            say(f"round {number + 1}/{options.pairs}  {latest}")
    grown = [many - few for many, few in zip(peaks[options.many], peaks[FEW], strict=True)]
    seen = f"{fmean(peaks[options.many]):.1f} MB - {fmean(peaks[FEW]):.1f} MB"
    rows = [
        Row(f"client's memory, {options.many} results - {FEW}", bootstrap(grown, fmean), " MB", GOAL_MB, seen),
        compare(f"run with {options.many} results / {FEW}", seconds[options.many], seconds[FEW]),
    ]
    conclude("results_scale", rows, {"seconds": seconds, "peak_mb": peaks}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
