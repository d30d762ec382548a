"""The checkers of `make audit`: pinned by requirements/checks.txt, in an environment of their own."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

LOCK, PLACE = "requirements/checks.txt", ".cache/checks"


@cache
def checker(root: Path, name: str) -> Path:
    """Return the program of a checker; the environment is made, or brought to what is pinned."""
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "--allow-existing", PLACE], cwd=root, check=True)
    python = f"--python={PLACE}/bin/python"
    subprocess.run([uv, "pip", "sync", "-q", "--require-hashes", python, LOCK], cwd=root, check=True)
    return root / PLACE / "bin" / name
