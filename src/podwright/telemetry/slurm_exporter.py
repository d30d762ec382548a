"""Tells Prometheus what Slurm's nodes and jobs do; asks sinfo and squeue, at most once in ten seconds."""

from __future__ import annotations

import argparse
import collections
import subprocess
import threading
import time
from typing import Callable, Counter, Dict, Iterator, List, Optional

from .page import Labels, MetricSample, page
from .server import Guard, MetricsServer, add_place, place_of

FRESH_S = 10.0
TIMEOUT_S = 30.0
KINDS = {
    "slurm_up": ("gauge", "Whether Slurm's controller answered."),
    "slurm_nodes": ("gauge", "Nodes by state."),
    "slurm_cpus": ("gauge", "CPUs by what they do."),
    "slurm_gpus": ("gauge", "GPUs there are, and those that jobs have."),
    "slurm_jobs": ("gauge", "Jobs by state and partition."),
}
NODE_FLAGS = "*$~#!%@^+-"
CPU_STATES = ("allocated", "idle", "other", "total")
_PLACE = "127.0.0.1:9341"


def parse_nodes(text: str) -> Iterator[MetricSample]:
    """Yield samples of `sinfo -h -N -O NodeHost,StateLong,CPUsState,Gres,GresUsed`; a node of two partitions once."""
    nodes: Dict[str, List[str]] = {}
    for line in text.splitlines():
        cells = line.split()
        if len(cells) >= 3:
            nodes[cells[0]] = cells[1:]
    counts: Dict[str, Counter[str]] = {name: collections.Counter() for name in ("nodes", "cpus", "gpus")}
    for cells in nodes.values():
        counts["nodes"][cells[0].rstrip(NODE_FLAGS)] += 1
        for state, count in zip(CPU_STATES, cells[1].split("/")):
            counts["cpus"][state] += int(count) if count.isdigit() else 0
        counts["gpus"]["total"] += gpu_count(cells[2] if len(cells) > 2 else "")
        counts["gpus"]["allocated"] += gpu_count(cells[3] if len(cells) > 3 else "")
    for name, states in counts.items():
        for state, number in states.items():
            yield MetricSample("slurm_" + name, (("state", state),), number)


def gpu_count(gres: str) -> int:
    """Return the GPUs of a word such as `gpu:a100:8(S:0-1),shard:4`."""
    total = 0
    for part in gres.split(","):
        fields = part.split("(")[0].split(":")
        if fields[0] == "gpu" and fields[-1].isdigit():
            total += int(fields[-1])
    return total


def parse_jobs(text: str) -> Iterator[MetricSample]:
    """Yield samples of `squeue -h -r -o '%T %P'`."""
    counts = collections.Counter(tuple(line.split()[:2]) for line in text.splitlines() if len(line.split()) >= 2)
    for (state, partition), count in counts.items():
        labels: Labels = (("state", state.lower()), ("partition", partition))
        yield MetricSample("slurm_jobs", labels, count)


def ask(run: Callable[[List[str]], str]) -> List[MetricSample]:
    """Return all samples; where Slurm does not answer only that it does not."""
    fields = "NodeHost:64,StateLong:32,CPUsState:32,Gres:128,GresUsed:128"
    try:
        nodes = run(["sinfo", "--noheader", "--Node", "--Format=%s" % fields])
        jobs = run(["squeue", "--noheader", "--array", "--format=%T %P"])
    except (OSError, subprocess.SubprocessError):
        return [MetricSample("slurm_up", (), 0)]
    return [MetricSample("slurm_up", (), 1), *parse_nodes(nodes), *parse_jobs(jobs)]


def said_of(command: List[str]) -> str:
    """Return what a command printed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S)
    return done.stdout.decode("utf-8", "replace")


class SlurmPage:
    """One page; however many ask for it, Slurm is asked once in a while."""

    def __init__(self, run: Callable[[List[str]], str] = said_of) -> None:
        self._run, self._lock = run, threading.Lock()
        self._samples: List[MetricSample] = []
        self._asked: Optional[float] = None

    def text(self, open_metrics: bool = False) -> str:
        """Return the page, not older than a few seconds."""
        with self._lock:
            if self._asked is None or time.monotonic() - self._asked > FRESH_S:
                self._samples, self._asked = ask(self._run), time.monotonic()
            return page(KINDS, self._samples, open_metrics)


def main(arguments: List[str]) -> None:
    """Take the words of `exporters.py slurm`."""
    parser = argparse.ArgumentParser(
        prog="exporters.py slurm", description="Tell Prometheus of Slurm's nodes and jobs."
    )
    add_place(parser, _PLACE)
    given = parser.parse_args(arguments)
    try:
        guard = Guard.of_files(given.certificate, given.key, given.token)
        MetricsServer(place_of(given.listen), SlurmPage().text, guard).serve_forever()
    except (ValueError, OSError) as error:
        raise SystemExit("exporters.py slurm: %s" % error)
