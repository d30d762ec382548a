"""Labs for tests: real clusters on this machine, each in a short folder of its own, gone when the test is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podwright.lab import slurm
from podwright.lab.slurm import Lab


@contextmanager
def slurm_lab(nodes: int = 4, accounting: bool = False, **wanted: Any) -> Iterator[Lab]:
    """Gives a Slurm cluster; takes the fields of `podwright.lab.shape.Shape` by name."""
    folder = Path(tempfile.mkdtemp(prefix="pwlab-", dir="/tmp"))
    try:
        lab = slurm.up(folder / "lab", nodes=nodes, accounting=accounting, **wanted)
        try:
            yield lab
        finally:
            lab.down()
    finally:
        left = slurm.find(folder / "lab")
        if left is not None:
            left.down()
        shutil.rmtree(folder)
