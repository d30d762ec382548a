"""The demonstration: draws driving scenes, trains a segmentation network on two virtual nodes, says where to look.

It calls the same commands that a user would type, and prints nothing that they do not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / ".venv" / "bin"
FRAMES = Path("examples/a2d2-small")
WORKLOAD = "examples/segmentation.yaml"

NEXT = f"""\
podwright show last                           what is known of the run
podwright logs last --rank 0                  what a rank wrote
podwright render {WORKLOAD}   what was started
podwright run {WORKLOAD} --set nodes=1
(after: source .venv/bin/activate)"""


def environment() -> dict[str, str]:
    """The shell a user has after activating `.venv`: ranks start `python` from there."""
    return os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def make_data() -> None:
    """Draws the scenes; a set that is there already is kept."""
    command = [str(BIN / "python"), "programs/segmentation/scenes.py", str(FRAMES), "--frames", "480", "--scenes", "4"]
    done = subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    print(f"{'data':<9} {done.stdout.strip()}    {FRAMES}", flush=True)


def main() -> int:
    """Runs the demonstration and gives the run's own exit code."""
    make_data()
    command = [str(BIN / "podwright"), "run", WORKLOAD, "--on", "local"]
    code = subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    if code == 0:
        print(indent(NEXT, " " * 10).replace(" " * 9, f"{'try':<9}", 1), flush=True)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
