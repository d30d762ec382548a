"""Nsight Systems, where it is installed: the leader runs under it, and the kernels it traced become the profile.

`nsys` cannot look into a process that already runs, hence the leader starts itself again under it and waits. The steps
to look at are marked by CUDA's own profiler calls, so that nothing else is traced. The trace stays beside the profile,
for Nsight's own viewer.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType

import torch

from .kernels import Kernel, summary_of
from .options import Shared

NSYS = "nsys"
UNDER = "PODWRIGHT_UNDER_NSYS"
"""Set for a leader that runs under it: the file that it writes its process id into."""
TRACE = "profile.nsys-rep"
COLUMNS = ("Start (ns)", "Duration (ns)", "Name")
NS = 1e-9
OPTIONS = ("--trace=cuda", "--sample=none", "--cpuctxsw=none", "--force-overwrite=true")
RANGE = ("--capture-range=cudaProfilerApi", "--capture-range-end=stop")


def program_for(settings: Shared) -> str | None:
    """Where nsys is, for a leader on a GPU of which a profile is asked; None: PyTorch's own profiler is used."""
    if not settings.profile_steps or UNDER in os.environ or os.environ.get("RANK", "0") != "0":
        return None
    if settings.device == "cpu" or not torch.cuda.is_available():
        return None
    return shutil.which(NSYS)


def run_again(nsys: str, out: Path) -> int:
    """Run this program again under nsys and complete the profile that it leaves; returns its exit code."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "pid"
        command = [nsys, "profile", *OPTIONS, *RANGE, f"--output={out / TRACE}", sys.executable, *sys.orig_argv[1:]]
        child = subprocess.Popen(command, env={**os.environ, UNDER: str(place)})

        def pass_on(number: int, frame: FrameType | None) -> None:
            try:
                os.kill(int(place.read_text()), number)
            except (OSError, ValueError):  # it has not begun, or is over
                child.send_signal(number)

        before = signal.signal(signal.SIGTERM, pass_on)
        code = child.wait()
        signal.signal(signal.SIGTERM, before)
    complete(nsys, out)
    return code if code >= 0 else 128 - code


def begin() -> bool:
    """Say who runs under nsys, if this process does, so that signals reach it; returns whether it does."""
    place = os.environ.get(UNDER)
    if place is None:
        return False
    Path(place).write_text(str(os.getpid()))
    return True


def complete(nsys: str, out: Path) -> None:
    """Add what was traced to the profile; one whose trace cannot be read is removed, and why is said."""
    path = out / "profile.json"
    if not path.exists():
        return
    command = [nsys, "stats", "--report=cuda_gpu_trace", "--format=csv", "--output=-", "--force-export=true"]
    done = subprocess.run([*command, str(out / TRACE)], capture_output=True, text=True, check=False)
    try:
        kernels = kernels_of(done.stdout)
    except ValueError as error:
        path.unlink()
        print(f"no profile: {nsys} stats ended with {done.returncode}: {error}")
        print("hint: without nsys on the path, PyTorch's own profiler looks", flush=True)
        return
    summary = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(summary | summary_of(kernels), indent=1), encoding="utf-8")


def kernels_of(text: str) -> list[Kernel]:
    """The kernels and copies that `nsys stats` lists; a ValueError where it lists none."""
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines) if line.startswith(f"{COLUMNS[0]},{COLUMNS[1]}")]
    if not heads:
        raise ValueError("it lists no kernels")
    kernels = []
    for row in csv.DictReader(lines[heads[0] :]):
        start, took, name = (row.get(column) or "" for column in COLUMNS)
        if start.isdecimal() and took.isdecimal():
            kernels.append((int(start) * NS, (int(start) + int(took)) * NS, name))
    return kernels
