"""What `podwright exporter` takes of a core and of memory on a host with eight GPUs, asked every 15 s.

    python benchmarks/exporter_cost.py [--pairs 8] [--window 15] [--json OUT]

The GPUs are a stand-in for NVIDIA's library that reads a file at every call, so its own time is in the figure: it is an
upper bound of ours, not what a driver costs (benchmarks/gpu_telemetry.py measures one of those). A window is one
measurement by the kernel's account of the process, with one scrape in it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import fmean

from measure import ROOT, Row, bootstrap, conclude, machine, parser, say, start
from podwright.telemetry.host_files import host_program

CORE_GOAL, MEMORY_GOAL = 1.0, 40.0
"""Percent of a core, and MiB."""
GPUS = 8
SETTLE_S = 5.0
_PORT = 29835


def cpu_s(pid: int) -> float:
    """User and system time of all threads of a process so far."""
    threads = Path("/proc", str(pid), "task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def memory_mib(pid: int) -> float:
    """Resident memory of a process."""
    return int(Path("/proc", str(pid), "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def started(folder: Path) -> subprocess.Popen[bytes]:
    """Start the exporter as a host does, with made GPUs."""
    library, readings = folder / "libnvidia-ml.so.1", folder / "readings"
    subprocess.run(
        ["gcc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "fakes" / "fakenvml.c"], check=True
    )
    readings.write_text(f"-1 count {GPUS}\n-1 gpm 1\n-1 field91 18\n")
    (folder / "kern.log").touch()
    program = folder / "exporters.py"
    program.write_text(host_program())
    words = [
        "--host",
        "here",
        "--listen",
        f"127.0.0.1:{_PORT}",
        "--bridge",
        "off",
        "--kernel-log",
        str(folder / "kern.log"),
    ]
    command = [sys.executable, "-S", str(program), "gpu", *words, "--nvml", str(library), "--gpus", str(GPUS)]
    return subprocess.Popen(command, env={**os.environ, "FAKE_NVML": str(readings)})


def watch(process: subprocess.Popen[bytes], windows: int, window_s: float) -> tuple[list[float], list[float], int]:
    """Percent of a core and MiB, window by window, and the bytes of a page."""
    percents, sizes, page_bytes = [], [], 0
    for number in range(windows):
        before, began = cpu_s(process.pid), time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{_PORT}/metrics") as answer:
            page_bytes = len(answer.read())
        time.sleep(max(0.0, window_s - (time.monotonic() - began)))
        percents.append(100 * (cpu_s(process.pid) - before) / (time.monotonic() - began))
        sizes.append(memory_mib(process.pid))
        say(f"window {number + 1}/{windows}  {percents[-1]:.2f} % of a core, {sizes[-1]:.1f} MiB")
    return percents, sizes, page_bytes


def main() -> int:
    """Measure, and say whether the goals were met."""
    made = parser("CPU use and memory of the exporter of a host with eight GPUs.", pairs=8)
    made.add_argument("--window", type=float, default=15.0, help="seconds of one measurement (default: %(default)s)")
    options = made.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        process = started(Path(folder))
        try:
            time.sleep(SETTLE_S)
            percents, sizes, page_bytes = watch(process, options.pairs, options.window)
        finally:
            process.kill()
            process.wait()
    page = f"page of {page_bytes:,} bytes"
    rows = [
        Row("exporter, 8 GPUs, of a core", bootstrap(percents, fmean), "%", CORE_GOAL, page),
        Row("exporter, 8 GPUs, memory", bootstrap(sizes, fmean), " MiB", MEMORY_GOAL, "resident"),
    ]
    taken = {"window_s": options.window, "percent": percents, "mib": sizes}
    conclude("exporter_cost", rows, taken, facts, options.json)
    return 0


if __name__ == "__main__":
    start(main)
