"""Wall time of the same training under bare torchrun and under Podwright.

    python benchmarks/overhead.py [--pairs 5] [--json OUT] [--epochs 3] [--frames 200]

Two arms in turn, each the same program, arguments, environment and frames, on 2 nodes x 1 rank of this machine:
torchrun started by hand twice; `podwright run --detach` and `podwright wait`. The goal allows Podwright 0.3 s once for
each run, and 1 % of its time. What the live view costs is in live_view.py.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measure import (
    BIN,
    ROOT,
    Row,
    alternate,
    bootstrap,
    compare,
    conclude,
    environment,
    machine,
    mean_of_middle,
    parser,
    start,
)

PROGRAM = ROOT / "programs" / "segmentation"
FRAMES = ROOT / ".cache" / "benchmarks"
NODES = 2
ALLOWED_S = 0.3
BARE, DETACHED, LIVE = "torchrun", "podwright, detached", "podwright, live view"
WORKLOAD = """\
name: overhead
code: {code}
command: {command}
nodes: {nodes}
launcher: torchrun
env: {{OMP_NUM_THREADS: 1}}
"""
MLLOG = re.compile(rb":::MLLOG (\{.*\})")


@dataclass
class Training:
    """One training, and the ways to start it."""

    folder: Path
    arguments: list[str]
    env: dict[str, str]
    loops: dict[str, list[float]] = field(default_factory=dict)
    added: list[float] = field(default_factory=list)

    def prepare(self) -> None:
        """A copy of the program outside any repository: what the snapshot holds must not depend on the checkout."""
        shutil.copytree(PROGRAM, self.folder / "code", ignore=shutil.ignore_patterns("__pycache__", ".mypy_cache"))
        command = ["python", "train.py", *self.arguments, "--checkpoint", "{checkpoint}"]
        text = WORKLOAD.format(code=self.folder / "code", command=json.dumps(command), nodes=NODES)
        (self.folder / "overhead.yaml").write_text(text)

    def bare(self) -> float:
        """By hand, with what Podwright would give torchrun and the ranks."""
        out = Path(tempfile.mkdtemp(dir=self.folder))
        env = {**self.env, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        words = [*self.arguments, "--checkpoint", str(out / "checkpoints"), "--out", str(out / "results")]
        port = free_port()
        began = time.perf_counter()
        with (out / "log").open("wb") as log:
            where: dict[str, Any] = {"cwd": self.folder / "code", "env": env, "stdout": log, "stderr": log}
            nodes = [subprocess.Popen([*torchrun(node, port), "train.py", *words], **where) for node in range(NODES)]
            end(nodes, "torchrun")
        took = time.perf_counter() - began
        self.note(BARE, out / "log")
        shutil.rmtree(out)
        return took

    def detached(self) -> float:
        """As scripts do it."""
        began, at = time.perf_counter(), time.time()
        run_id = self.podwright("run", "overhead.yaml", "--detach")
        self.podwright("wait", run_id)
        took = time.perf_counter() - began
        self.added.append(self.around(run_id, at, at + took))
        self.close(DETACHED, run_id)
        return took

    def around(self, run_id: str, began: float, ended: float) -> float:
        """Seconds before torchrun was started and after it had ended: what a run adds to any training."""
        [log] = (self.folder / "home" / "runs" / run_id / "record").glob("n0.*/events.jsonl")
        times = {event["k"]: event["t"] for event in map(json.loads, log.read_text().splitlines())}
        return float(times["go"] - began + ended - times["end"])

    def live(self) -> float:
        """As a person does it: on a terminal, which somebody reads."""
        leader, follower = pty.openpty()
        env = {**self.env, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"}
        began = time.perf_counter()
        command = [str(BIN / "podwright"), "run", "overhead.yaml"]
        where: dict[str, Any] = {"stdin": follower, "stdout": follower, "stderr": follower}
        child = subprocess.Popen(command, cwd=self.folder, env=env, **where)
        os.close(follower)
        try:
            read_out(leader)
        finally:
            end([child], "podwright run")
            os.close(leader)
        took = time.perf_counter() - began
        self.close(LIVE, self.runs()[-1])
        return took

    def podwright(self, *words: str) -> str:
        """A command of ours; what it prints."""
        command = [str(BIN / "podwright"), *words]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr.strip()}")
        return done.stdout.strip()

    def runs(self) -> list[str]:
        """Those that are there, oldest first."""
        return [run["id"] for run in json.loads(self.podwright("ps", "--json"))]

    def stop(self) -> None:
        """An interrupted measurement leaves no training behind."""
        for run_id in self.runs():
            self.podwright("cancel", run_id)
            subprocess.run([str(BIN / "podwright"), "wait", run_id], env=self.env, capture_output=True, check=False)

    def close(self, arm: str, run_id: str) -> None:
        """Note what the training itself took, and remove the run: a full home must not slow the next one."""
        [log] = (self.folder / "home" / "runs" / run_id / "record").glob("*/rank0.log")
        self.note(arm, log)
        self.podwright("rm", run_id, "--yes")

    def note(self, arm: str, log: Path) -> None:
        """From the program's own first to its last word: its loop, without starting and ending."""
        times = [json.loads(found)["time_ms"] for found in MLLOG.findall(log.read_bytes())]
        self.loops.setdefault(arm, []).append((times[-1] - times[0]) / 1000)


def torchrun(node: int, port: int) -> list[str]:
    """The launch line of one node."""
    return [
        str(BIN / "python"), "-m", "torch.distributed.run", f"--nnodes={NODES}", f"--node-rank={node}",
        "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={port}", "--local-addr=127.0.0.1",
        "--max-restarts=0",
    ]  # fmt: skip


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end(children: Sequence[subprocess.Popen[bytes]], name: str) -> None:
    """Wait for all; whatever happens, none is left behind."""
    try:
        codes = [child.wait() for child in children]
    finally:
        for child in children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)
                child.wait()
    if any(codes):
        raise SystemExit(f"{name}: exit codes {codes}")


def read_out(terminal: int) -> None:
    """Take what is drawn until the other side closes."""
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:  # Linux says the end of a terminal so
        return


def lengths(made: argparse.ArgumentParser, epochs: int) -> None:
    """How long the training is."""
    made.add_argument("--epochs", type=int, default=epochs, help="length of the training (default: %(default)s)")
    made.add_argument("--frames", type=int, default=200, help="frames to draw (default: %(default)s)")


@contextmanager
def prepared(options: argparse.Namespace) -> Iterator[Training]:
    """A training of that length in a folder of its own; nothing of it is left behind."""
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        arguments = ["--data", str(make_frames(options.frames)), "--epochs", str(options.epochs)]
        training = Training(Path(folder), arguments, environment(Path(folder, "home")))
        training.prepare()
        try:
            yield training
        finally:
            training.stop()


def asked(options: argparse.Namespace) -> dict[str, int]:
    """What was measured, for the raw figures."""
    return {"epochs": options.epochs, "frames": options.frames, "nodes": NODES}


def make_frames(count: int) -> Path:
    """Draws the driving scenes, once for this checkout."""
    folder = FRAMES / f"frames-{count}"
    command = [str(BIN / "python"), str(PROGRAM / "scenes.py"), str(folder), "--frames", str(count), "--scenes", "4"]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return folder


def find(taken: dict[str, list[float]], loops: dict[str, list[float]], added: list[float]) -> list[Row]:
    """The ratios that matter."""
    bare, ours = taken[BARE], taken[DETACHED]
    loop = {name: times[-len(bare) :] for name, times in loops.items()}
    around = [whole - inner for whole, inner in zip(bare, loop[BARE], strict=True)]
    middle = bootstrap(added, mean_of_middle)
    return [
        compare("detached + wait / torchrun", ours, bare),
        compare("detached + wait less 0.3 s / torchrun", [max(one - ALLOWED_S, 1e-9) for one in ours], bare, goal=1.01),
        Row("added before and after torchrun", middle, "s", goal=ALLOWED_S + 0.01 * statistics.median(bare)),
        compare("added / torchrun's own start and end", added, around),
        compare("training loop alone / torchrun's", loop[DETACHED], loop[BARE]),
    ]


def main() -> int:
    """Measure the two arms in turn."""
    made = parser("The same training under torchrun and under Podwright.", pairs=5)
    lengths(made, epochs=3)
    options = made.parse_args()
    facts = machine()
    with prepared(options) as training:
        taken = alternate({BARE: training.bare, DETACHED: training.detached}, options.pairs)
    raw = {
        "asked": asked(options),
        "seconds": taken,
        "loop_seconds": training.loops,
        "added_seconds": training.added,
    }
    rows = find(taken, training.loops, training.added[-options.pairs :])
    conclude("overhead", rows, raw, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
