"""Cancelling a matrix of running points on Kubernetes, against kubectl's deletion of the same Jobs by their label.

    python benchmarks/kubernetes_cancel.py [--pairs 3] [--json OUT] [--points 200]

A lab of two nodes is started for it, which needs root. Both arms start the same matrix, wait until every rank runs, and
count the seconds from the command until the last rank is gone: `podwright cancel`, and `kubectl delete jobs -l`. A node
takes 110 Kubernetes pods: fewer points than that for each node, and no more than the machine starts within minutes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import podwright
from cancelling import END_S, GOAL_RATIO, OURS, measured, ours, write_matrix
from measure import alternate, compare, conclude, machine, parser, start
from podwright.lab import kubernetes, processes
from podwright.lab.kubernetes import KubernetesLab
from podwright.lab.kubernetes.shape import NAMESPACE
from podwright.launch import pods
from podwright.runs import Home

BARE = "kubectl delete jobs -l"
LABEL = "podwright.dev/job"
SHARED = """\
kubernetes:
  patch:
    spec:
      containers: [{name: pilot, resources: {limits: {cpu: 2, memory: 128Mi}, requests: {cpu: 1m, memory: 16Mi}}}]
"""
"""A rank that only sleeps needs no core of its own, of which the lab's nodes have as few as this machine."""


@contextmanager
def small_lab(folder: Path) -> Iterator[KubernetesLab]:
    """A lab that is made known under its name in a home of its own."""
    lab = kubernetes.up(folder / "lab", nodes=2, virtual_nodes=0, name="bench-kubernetes")
    try:
        os.environ["PODWRIGHT_HOME"] = str(folder / "home")
        pods.add(Home.open(), lab.pod_file)
        yield lab
    finally:
        lab.down()


def bare(lab: KubernetesLab, run: podwright.Run) -> None:
    """As the lab's user, who does not wait for the end either."""
    selector = f"--selector={LABEL}={run.id}"
    done = lab.kubectl("delete", "jobs", selector, f"--namespace={NAMESPACE}", "--wait=false")
    if done.returncode:
        raise SystemExit(done.stderr.strip())


def clear(lab: KubernetesLab) -> None:
    """Wait until nothing of a matrix is left, before the next arm begins."""

    def is_empty() -> bool:
        return not lab.kubectl("get", "pods", f"--namespace={NAMESPACE}", f"--selector={LABEL}", "-o", "name").stdout

    if not processes.until(is_empty, END_S, every_s=1):
        raise SystemExit("Kubernetes pods are left")


def main() -> int:
    """Start a lab, then start and cancel in turn."""
    made = parser("Cancelling a matrix on Kubernetes against kubectl.", pairs=3)
    made.add_argument("--points", type=int, default=200, help="points of the matrix (default: %(default)s)")
    options = made.parse_args()
    facts, count = machine(), options.points
    with tempfile.TemporaryDirectory(prefix="pwbench-", dir="/tmp") as name, small_lab(Path(name)) as lab:
        path = Path(name, "sweep.yaml")
        write_matrix(path, count, SHARED)
        arms = {
            OURS: partial(measured, lab.name, path, count, ours, partial(clear, lab)),
            BARE: partial(measured, lab.name, path, count, partial(bare, lab), partial(clear, lab)),
        }
        taken = alternate(arms, options.pairs, warm_up=False)
    rows = [compare(f"{count} running points / kubectl delete -l", taken[OURS], taken[BARE], goal=GOAL_RATIO)]
    conclude("kubernetes_cancel", rows, {"seconds": taken}, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
