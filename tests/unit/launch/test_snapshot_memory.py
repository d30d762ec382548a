"""A client's memory does not grow with the code that it sends, whichever way that goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

LITTLE, MUCH = 1 << 20, 96 << 20
MAX_GROWN = 32 << 20
"""Bytes, a third of the code: what is held at once does not depend on it."""
PREPARE = """\
import io, os, sys
from pathlib import Path

from podwright.clients.ssh import reach_to
from podwright.engines.kubernetes.probe import of_payload
from podwright.engines.payload import snapshot
from podwright.engines.slurm.upload import pack
from podwright.images.layer import layer_digest
from podwright.runs import Home

folder = Path(sys.argv[1])
home = Home.open(folder / "home")
code = snapshot(folder / "code", spool=home.code)
"""
WAYS = {
    "store": 'home.store(code.tar, "tar")',
    "upload": (
        'job = folder / "toy-2222" / "job"\n'
        "job.mkdir(parents=True)\n"
        'os.link(home.store(code.tar, "tar"), job / "code.tar")\n'
        'pack(reach_to(None, None), str(folder / "cluster"), [job.parent])\n'
        'assert (folder / "cluster/runs/toy-2222/job/code.tar").stat().st_size > int(sys.argv[2])'
    ),
    "pieces": "of_payload(code.tar)",
    "layer": 'layer_digest(code.tar, "/podwright/code.tar")',
}
PEAK = """
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM:")))
"""


def peak_bytes(folder: Path, way: str, size: int) -> int:
    """Return the most memory that a process had which sent so much code in this way."""
    (folder / "code").mkdir(parents=True)
    with (folder / "code" / "weights.bin").open("wb") as file:
        file.truncate(size)
    program = f"{PREPARE}{WAYS[way]}{PEAK}"
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(size)], env=environ, capture_output=True, text=True, check=True
    )
    return int(done.stdout) << 10


@pytest.mark.parametrize("way", WAYS)
def test_much_code_takes_no_more_memory_than_little(tmp_path: Path, way: str) -> None:
    little, much = (peak_bytes(tmp_path / name, way, size) for name, size in (("a", LITTLE), ("b", MUCH)))
    assert much - little < MAX_GROWN
