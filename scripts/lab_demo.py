"""The demonstration on a cluster: a real Slurm on this machine, and on it a training, an MPI program, a sweep, a chain.

It calls the same commands that a user would type. The workload files are those of the demonstration on this machine
alone. The lab stays up for whoever wants to go on; `podwright lab down` ends it.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

from scripts.demo import BIN, ROOT, WORKLOAD, environment, make_data

LAB = "lab-slurm"


def podwright(*words: str, catch: bool = False) -> str:
    """Shows a command and runs it; gives what it printed where that is wanted. One that fails ends it all."""
    print(f"\n$ podwright {shlex.join(words)}", flush=True)
    stdout = subprocess.PIPE if catch else None
    command = [str(BIN / "podwright"), *words]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=stdout, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return (done.stdout or "").strip()


def main() -> int:
    """Runs the demonstration."""
    podwright("lab", "up", "slurm")
    make_data()
    podwright("run", WORKLOAD, "--on", LAB, "--set", "nodes=4")
    podwright("run", "examples/allreduce.yaml", "--on", LAB)
    podwright("run", "examples/sweep.yaml", "--on", LAB)
    first = podwright("run", "examples/allreduce.yaml", "--on", LAB, "--detach", catch=True)
    second = podwright("run", "examples/allreduce.yaml", "--on", LAB, "--detach", "--after", first, catch=True)
    podwright("run", "examples/allreduce.yaml", "--on", LAB, "--after", second)
    podwright("ps")
    print("\nThe lab stays up: `podwright lab status` shows it, `podwright lab down` ends it.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
