"""MLPerf's own checker, as its users call it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def check(log: str, folder: Path) -> tuple[bool, str]:
    """Whether the checker accepts a log by the rules of training 0.7.0, and what it says.

    Of two events where there must be one it only warns: here a warning counts as an error.
    """
    path = folder / "result_0.txt"
    path.write_text(log, encoding="utf-8")
    checker = [sys.executable, "-m", "mlperf_logging.compliance_checker", "--usage", "training", "--ruleset", "0.7.0"]
    checker += ["--werror"]
    done = subprocess.run(
        [*checker, "--log_output", str(folder / "said.txt"), str(path)], capture_output=True, text=True, check=False
    )
    return done.returncode == 0, (folder / "said.txt").read_text() + done.stderr
