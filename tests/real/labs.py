"""Labs for tests: real clusters on this machine, each in a short folder of its own, gone when the test is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podwright.lab import kubernetes, slurm
from podwright.lab.slurm import Lab


@contextmanager
def slurm_lab(nodes: int = 4, accounting: bool = False, **wanted: Any) -> Iterator[Lab]:
    """Gives a Slurm cluster; takes the fields of `podwright.lab.shape.Shape` by name."""
    with _folder() as folder:
        try:
            yield slurm.up(folder, nodes=nodes, accounting=accounting, **wanted)
        finally:
            _end(slurm.find(folder))


@contextmanager
def kubernetes_lab(nodes: int = 2, virtual_nodes: int = 0, **wanted: Any) -> Iterator[kubernetes.Lab]:
    """Gives a Kubernetes cluster; takes the fields of `podwright.lab.kubernetes.Shape` by name."""
    with _folder() as folder:
        try:
            yield kubernetes.up(folder, nodes=nodes, virtual_nodes=virtual_nodes, **wanted)
        finally:
            _end(kubernetes.find(folder))


@contextmanager
def _folder() -> Iterator[Path]:
    above = Path(tempfile.mkdtemp(prefix="pwlab-", dir="/tmp"))
    try:
        yield above / "lab"
    finally:
        shutil.rmtree(above)


def _end(lab: Lab | kubernetes.Lab | None) -> None:
    """Ends what is left: all of the lab, or the half of one that did not come up."""
    if lab is not None:
        lab.down()
