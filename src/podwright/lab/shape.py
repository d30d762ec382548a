"""What all labs that are started here have in common: a name, nodes, GPUs, and how they are written into a pod file."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from podwright.spec.problems import refuse, short

MAX_GPUS = 16
DGX_GPUS = 8
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True)
class LabShape(ABC):
    """What can be chosen of any lab."""

    name: str
    nodes: int
    gpus: int

    @abstractmethod
    def words(self) -> str:
        """Return the shape in words."""

    def hosts(self) -> list[str]:
        """Return the names of the nodes that run something; short, as Slurm makes socket paths of them."""
        return [f"n{number}" for number in range(1, self.nodes + 1)]


def check_name(name: str) -> None:
    """Refuse a name that is none for a pod; it also names a folder."""
    if not _NAME.fullmatch(name):
        raise refuse(
            f'"{short(name)}" is not a name for a lab',
            hint="use lower-case letters, digits and dashes, 40 at most, and a letter first",
            field="--name",
        )


def model(gpus: int) -> str:
    """Return the node's model: from the library, or the same server with another number of GPUs written out."""
    if gpus == DGX_GPUS:
        return "dgx-a100"
    facts: dict[str, Any] = {"title": f"A DGX A100 with {gpus} GPUs", "sockets": 2, "cores": 128, "threads": 256}
    if gpus:
        facts["gpus"] = {"model": "A100-SXM4-40GB", "count": gpus, "memory": "40GiB"}
    return json.dumps({**facts, "memory": "1TiB"})
