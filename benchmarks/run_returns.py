"""How long `podwright run` takes to return once its run has ended, on this machine, Slurm and Kubernetes.

    python benchmarks/run_returns.py [--pairs 10] [--json OUT]

Labs are started for it, which needs root. The end is the moment that the leader noted in the record; the clock of a lab
is this machine's.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import kubernetes_cancel
import slurm_submit
from measure import BIN, Row, bootstrap, conclude, machine, mean_of_middle, parser, say, start

GOAL_S = 5.0
WORKLOAD = """\
name: brief
command: "true"
nodes: 2
resources: {cpus: 1, memory: 256MiB}
"""
LABS: dict[str, Callable[[Path], AbstractContextManager[Any]]] = {
    "Slurm": slurm_submit.quiet_lab,
    "Kubernetes": kubernetes_cancel.small_lab,
}


def returned(path: Path, on: str) -> float:
    """Seconds from the end of a run to the end of the command that followed it."""
    command = [str(BIN / "podwright"), "run", str(path), "--on", on, "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    now = time.time()
    if done.returncode:
        raise SystemExit(f"podwright run --on {on}: {done.stderr.strip()[-500:]}")
    return now - datetime.fromisoformat(json.loads(done.stdout)["ended_at"]).timestamp()


def rounds(path: Path, on: str, count: int) -> list[float]:
    """So many runs; the first opens connections and is not counted."""
    taken = [returned(path, on) for _ in range(count + 1)][1:]
    say(f"{on}: {', '.join(f'{took:.2f}' for took in taken)} s")
    return taken


def main() -> int:
    """Run on each target in turn."""
    options = parser("How long `podwright run` takes to return.", pairs=10).parse_args()
    facts, taken = machine(), {}
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name:
        path = Path(name, "work", "brief.yaml")
        path.parent.mkdir()
        path.write_text(WORKLOAD)
        os.environ["PODWRIGHT_HOME"] = str(Path(name, "home"))
        taken["this machine"] = rounds(path, "local", options.pairs)
        for kind, lab_of in LABS.items():
            folder = Path(name, kind)
            folder.mkdir()
            with lab_of(folder) as lab:
                taken[kind] = rounds(path, lab.name, options.pairs)
    rows = [
        Row(f"seconds from the end to the return, {where}", bootstrap(times, mean_of_middle), " s", GOAL_S)
        for where, times in taken.items()
    ]
    conclude("run_returns", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
