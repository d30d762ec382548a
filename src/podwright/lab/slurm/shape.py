"""What a lab looks like: fixed when it is first started, kept in its folder, and written as a pod file."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podwright.lab.folder import keep, kept
from podwright.lab.shape import DGX_GPUS, MAX_GPUS, LabShape, check_name, model
from podwright.lab.user import LabUser
from podwright.spec.problems import refuse

KIND = "slurm"
MAX_NODES = 1000


@dataclass(frozen=True)
class SlurmLabShape(LabShape):
    """What can be chosen of a Slurm lab."""

    name: str = "lab-slurm"
    nodes: int = 4
    gpus: int = DGX_GPUS
    accounting: bool = True
    min_job_age_s: int = 300
    """How long the controller remembers a finished job."""
    slurmd_timeout_s: int | None = None
    """How long the controller waits for a silent node before it calls it down; None: a few seconds, by its size."""
    reveal: tuple[str, ...] = ()
    """Further folders that the lab's user shall see, where a closed folder lies above them."""

    def unit(self) -> int:
        """Return the nodes of a scalable unit: half the lab while it is small, a DGX SuperPOD's 20 from 40 nodes on."""
        return max(1, min(20, self.nodes // 2))

    def words(self) -> str:
        """Return the shape in words."""
        nodes = f"{self.nodes} node{'s' if self.nodes > 1 else ''} of {self.gpus} GPUs"
        return nodes if self.accounting else f"{nodes} without accounting"


def check(wanted: SlurmLabShape) -> None:
    """Refuse a shape that cannot be made."""
    check_name(wanted.name)
    if not 1 <= wanted.nodes <= MAX_NODES:
        raise refuse(f"a lab has 1 to {MAX_NODES} nodes, not {wanted.nodes}", field="--nodes")
    if not 0 <= wanted.gpus <= MAX_GPUS:
        raise refuse(f"a node of a lab has 0 to {MAX_GPUS} GPUs, not {wanted.gpus}", field="--gpus")


def read(folder: Path) -> tuple[SlurmLabShape, LabUser] | None:
    """Return shape and user of the lab in a folder; None where there is no Slurm lab."""

    def from_file(lab: dict[str, Any]) -> tuple[SlurmLabShape, LabUser]:
        wanted: dict[str, Any] = lab["shape"]
        return SlurmLabShape(**{**wanted, "reveal": tuple(wanted["reveal"])}), LabUser(**lab["user"])

    return kept(folder, KIND, from_file)


def write(folder: Path, shape: SlurmLabShape, user: LabUser) -> None:
    """Keep shape and user in the lab's folder."""
    keep(folder, KIND, shape=asdict(shape), user=asdict(user))


def pod_text(folder: Path, shape: SlurmLabShape) -> str:
    """Return the pod file of a lab: DGX A100 nodes, in scalable units, under one Slurm behind a login node."""
    hosts = f"n[1-{shape.nodes}]" if shape.nodes > 1 else "n1"
    scheduler = {
        "kind": "slurm",
        "login": shape.name,
        "ssh_config": str(folder / "ssh" / "config"),
        "folder": f"{folder}/shared/$USER",
        "python": sys.executable,
    }
    return f"""\
name: {shape.name}
title: A Slurm cluster on one machine, made by `podwright lab`
nodes:
  - hosts: "{hosts}"
    model: {model(shape.gpus)}
fabrics:
  compute: {{scalable_unit: {shape.unit()}}}
schedulers:
  - {json.dumps(scheduler)}
"""
