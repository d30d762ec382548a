"""Tells Prometheus what Slurm's nodes and jobs do; asks sinfo and squeue, at most once in ten seconds.

It is copied to a pod's controller as it is: standard library only, Python 3.8.
"""

from __future__ import annotations

import collections
import http.server
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Counter, Dict, List, Tuple

Labels = Tuple[Tuple[str, str], ...]
Samples = Dict[str, Dict[Labels, int]]

FRESH_S = 10.0
TIMEOUT_S = 30.0
HEADS = {
    "slurm_up": "Whether Slurm's controller answered.",
    "slurm_nodes": "Nodes by state.",
    "slurm_cpus": "CPUs by what they do.",
    "slurm_gpus": "GPUs there are, and those that jobs have.",
    "slurm_jobs": "Jobs by state and partition.",
}
NODE_FLAGS = "*$~#!%@^+-"
CPU_STATES = ("allocated", "idle", "other", "total")


def parse_nodes(text: str) -> Samples:
    """Return samples of `sinfo -h -N -O NodeHost,StateLong,CPUsState,Gres,GresUsed`; a node of two partitions once."""
    nodes: Dict[str, List[str]] = {}
    for line in text.splitlines():
        cells = line.split()
        if len(cells) >= 3:
            nodes[cells[0]] = cells[1:]
    states: Counter[str] = collections.Counter()
    cpus: Counter[str] = collections.Counter()
    gpus: Counter[str] = collections.Counter()
    for cells in nodes.values():
        states[cells[0].rstrip(NODE_FLAGS)] += 1
        for state, count in zip(CPU_STATES, cells[1].split("/")):
            cpus[state] += int(count) if count.isdigit() else 0
        gpus["total"] += gpu_count(cells[2] if len(cells) > 2 else "")
        gpus["allocated"] += gpu_count(cells[3] if len(cells) > 3 else "")
    return {
        "slurm_nodes": {(("state", state),): count for state, count in states.items()},
        "slurm_cpus": {(("state", state),): count for state, count in cpus.items()},
        "slurm_gpus": {(("state", state),): count for state, count in gpus.items()},
    }


def gpu_count(gres: str) -> int:
    """Return the GPUs of a word such as `gpu:a100:8(S:0-1),shard:4`."""
    total = 0
    for part in gres.split(","):
        fields = part.split("(")[0].split(":")
        if fields[0] == "gpu" and fields[-1].isdigit():
            total += int(fields[-1])
    return total


def parse_jobs(text: str) -> Samples:
    """Return samples of `squeue -h -r -o '%T %P'`."""
    counts = collections.Counter(tuple(line.split()[:2]) for line in text.splitlines() if len(line.split()) >= 2)
    samples: Dict[Labels, int] = {}
    for (state, partition), count in counts.items():
        samples[(("state", state.lower()), ("partition", partition))] = count
    return {"slurm_jobs": samples}


def page(samples: Samples) -> str:
    """Return the samples as Prometheus reads them."""
    lines: List[str] = []
    for name, text in HEADS.items():
        lines += ["# HELP %s %s" % (name, text), "# TYPE %s gauge" % name]
        for labels, value in sorted(samples.get(name, {}).items()):
            pairs = ",".join('%s="%s"' % (key, escaped(label)) for key, label in labels)
            lines.append("%s%s %d" % (name, "{%s}" % pairs if pairs else "", value))
    return "\n".join(lines) + "\n"


def escaped(label: str) -> str:
    """Return a label's value as it stands between quotes."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def ask(run: Callable[[List[str]], str] | None = None) -> Samples:
    """Return all samples; where Slurm does not answer only that it does not."""
    run = run or said
    fields = "NodeHost:64,StateLong:32,CPUsState:32,Gres:128,GresUsed:128"
    try:
        nodes = run(["sinfo", "--noheader", "--Node", "--Format=%s" % fields])
        jobs = run(["squeue", "--noheader", "--array", "--format=%T %P"])
    except (OSError, subprocess.SubprocessError):
        return {"slurm_up": {(): 0}}
    samples: Samples = {"slurm_up": {(): 1}}
    samples.update(parse_nodes(nodes))
    samples.update(parse_jobs(jobs))
    return samples


def said(command: List[str]) -> str:
    """Return what a command printed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S)
    return done.stdout.decode("utf-8", "replace")


class Exporter(http.server.ThreadingHTTPServer):
    """Answers with one page; however many ask, Slurm is asked once in a while."""

    daemon_threads = True

    def __init__(self, place: Tuple[str, int]) -> None:
        super().__init__(place, MetricsRequest)
        self.lock, self.text = threading.Lock(), ""
        self.asked: float | None = None

    def metrics(self) -> str:
        """Return the page, not older than a few seconds."""
        with self.lock:
            if self.asked is None or time.monotonic() - self.asked > FRESH_S:
                self.text, self.asked = page(ask()), time.monotonic()
            return self.text


class MetricsRequest(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Exporter

    def do_GET(self) -> None:
        """Send the page."""
        if self.path != "/metrics":
            self.send_error(404)
            return
        body = self.server.metrics().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the journal free of every scrape."""


def main(arguments: List[str]) -> None:
    """Take ADDRESS PORT."""
    address, port = arguments
    Exporter((address, int(port))).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
