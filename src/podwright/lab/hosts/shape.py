"""What a lab of hosts looks like: kept in its folder, and written as a pod file without a scheduler."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.lab.folder import kept
from podwright.lab.shape import MAX_GPUS, LabShape, check_name
from podwright.lab.user import LabUser
from podwright.spec.problems import refuse

KIND = "hosts"
DEFAULT = "lab-hosts"
MAX_NODES = 40
SHARED = "/shared"
"""Where every host sees the folder that all of them share."""


@dataclass(frozen=True)
class HostsLabShape(LabShape):
    """What can be chosen of a lab of hosts."""

    name: str = DEFAULT
    nodes: int = 4
    gpus: int = 2

    def words(self) -> str:
        """Return the shape in words."""
        hosts = f"{self.nodes} bare host{'s' if self.nodes > 1 else ''}"
        return f"{hosts} of {self.gpus} GPUs" if self.gpus else hosts

    def addresses(self) -> dict[str, str]:
        """Return the address of every host on the lab's own network, which nothing outside the lab sees."""
        return {host: f"10.77.1.{number}" for number, host in enumerate(self.hosts(), 1)}


def check(wanted: HostsLabShape) -> None:
    """Refuse a shape that cannot be made."""
    check_name(wanted.name)
    if not 1 <= wanted.nodes <= MAX_NODES:
        raise refuse(f"a lab of hosts has 1 to {MAX_NODES} of them, not {wanted.nodes}", field="--nodes")
    if not 0 <= wanted.gpus <= MAX_GPUS:
        raise refuse(f"a host of a lab has 0 to {MAX_GPUS} GPUs, not {wanted.gpus}", field="--gpus")


def read(folder: Path) -> tuple[HostsLabShape, LabUser] | None:
    """Return shape and user of the lab in a folder; None where there is no lab of hosts."""

    def from_file(lab: dict[str, Any]) -> tuple[HostsLabShape, LabUser]:
        return HostsLabShape(**lab["shape"]), LabUser(**lab["user"])

    return kept(folder, KIND, from_file)


def pod_text(folder: Path, shape: HostsLabShape, user: LabUser, key: str) -> str:
    """Return the pod file of a lab: its hosts, the way to them, and who shall have an account there."""
    hosts = f"n[1-{shape.nodes}]" if shape.nodes > 1 else "n1"
    model: dict[str, Any] = {
        "title": "A host of a lab, as it claims to be",
        "sockets": 1,
        "cores": 4,
        "threads": 4,
        "memory": "4GiB",
    }
    if shape.gpus:
        model["gpus"] = {"model": "A100-SXM4-40GB", "count": shape.gpus, "memory": "40GiB"}
    account = {"name": user.name, "uid": user.uid, "keys": [key]}
    return f"""\
name: {shape.name}
title: Bare hosts on one machine, made by `podwright lab`
nodes:
  - hosts: "{hosts}"
    model: {json.dumps(model)}
    addresses: {json.dumps(list(shape.addresses().values()))}
storage:
  - {{name: shared, kind: bind, mount: {SHARED}}}
bringup:
  user: root
  ssh_config: {json.dumps(str(folder / "ssh" / "config"))}
  users:
    - {json.dumps(account)}
"""
