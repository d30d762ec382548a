"""A node of two is switched off: until all ranks run again, with a spare in the allocation and without.

    python benchmarks/spare.py [--pairs 5] [--json OUT] [--on slurm|kubernetes]

A lab of four nodes is started for it, which needs root. Both arms start a run of two nodes whose ranks only sleep, cut
the power of the second node once all ranks are there, and count the seconds until the leader has seen all ranks of the
next attempt. Without a spare the engine finds the node gone and starts the run, or the node, on another machine; no
other run waits for one. With a spare the goal is the silence after which a node is missed and ten seconds.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path

import podwright
from measure import Row, alternate, bootstrap, compare, conclude, machine, mean_of_middle, parser, say, start
from podwright.engines.base import SPARED_SILENCE_S
from podwright.lab import kubernetes
from podwright.lab.kubernetes import KubernetesLab
from podwright.lab.slurm import lab as slurm
from podwright.lab.slurm.lab import SlurmLab
from podwright.launch import pods
from podwright.pilot.protocol import leader_events, rows_of
from podwright.runs import Home

GOAL_S = SPARED_SILENCE_S + 10.0
GOAL_RATIO = 0.5
LONGEST_S, LOOK_S = 600.0, 0.5
WITH, WITHOUT = "with a spare", "without"
WORKLOAD = """\
name: struck
command: sleep 3600
launcher: ranks
nodes: 2
spares: {spares}
grace: 2s
resources: {{cpus: 1, memory: 64MiB}}
"""
AnyLab = SlurmLab | KubernetesLab


@contextmanager
def known_lab(on: str, folder: Path) -> Iterator[AnyLab]:
    """A lab that is made known under its name in a home of its own."""
    lab: AnyLab = slurm.up(folder / "lab", nodes=4) if on == "slurm" else kubernetes.up(folder / "lab", nodes=4)
    try:
        os.environ["PODWRIGHT_HOME"] = str(folder / "home")
        pods.add(Home.open(), lab.pod_file)
        yield lab
    finally:
        lab.down()


def ready_times(run: podwright.Run) -> list[float]:
    """When the leaders saw all ranks of each attempt, Unix seconds."""
    run.record()
    rows = chain.from_iterable(rows_of(path) for path in leader_events(str(run.folder.path / "record")))
    return sorted({row["t"] for row in rows if row["k"] == "ready"})


def until_ready(run: podwright.Run, attempts: int) -> float:
    """When all ranks of this attempt were seen."""
    deadline = time.monotonic() + LONGEST_S
    while len(ready_times(run)) < attempts:
        if time.monotonic() > deadline:
            raise SystemExit(f"{run.id}: {run.record().state}, {run.record().reason} after {LONGEST_S:.0f} s")
        time.sleep(LOOK_S)
    return ready_times(run)[attempts - 1]


def measured(lab: AnyLab, path: Path, spares: int) -> float:
    """Seconds from the loss of power to the next attempt's last rank; the lab is whole again afterwards."""
    path.write_text(WORKLOAD.format(spares=spares))
    run = podwright.run(podwright.load(path), on=lab.name)
    until_ready(run, 1)
    host = run.record().hosts[1]
    began = time.time()
    lab.kill_node(host)
    took = until_ready(run, 2) - began
    say(f"{took:.1f} s, spares {spares}")
    run.cancel()
    lab.heal()
    run.wait_at_most(LONGEST_S)
    return took


def main() -> int:
    """Start a lab, then strike in turn."""
    made = parser("A lost node with a spare against without.", pairs=5)
    made.add_argument("--on", choices=["slurm", "kubernetes"], default="slurm")
    options = made.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        with known_lab(options.on, Path(name)) as lab:
            path = Path(name, "struck.yaml")
            arms = {WITH: partial(measured, lab, path, 1), WITHOUT: partial(measured, lab, path, 0)}
            taken = alternate(arms, options.pairs, warm_up=False)
    rows = [
        compare(f"{options.on}: lost node, with a spare / without", taken[WITH], taken[WITHOUT], goal=GOAL_RATIO),
        Row(f"{options.on}: with a spare", bootstrap(taken[WITH], mean_of_middle), "s", GOAL_S),
        Row(f"{options.on}: without", bootstrap(taken[WITHOUT], mean_of_middle), "s"),
    ]
    conclude(f"spare_{options.on}", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
