"""What a Kubernetes lab looks like: fixed when it is first started, kept in its folder, and written as a pod file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from podwright.lab.folder import keep, kept
from podwright.lab.shape import DGX_GPUS, MAX_GPUS, LabShape, check_name, model
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import refuse

KIND = "kubernetes"
CONTROL = "control"
CONTROL_ADDRESS = "10.77.0.2"
NAMESPACE = "lab"
CLAIM = "podwright"
STORAGE_CLASS = "lab"
IMAGE = "lab/base:1"
DEFAULT = "lab-kubernetes"
MAX_NODES = 16
MAX_VIRTUAL = 5000
_UNIT = 20


@dataclass(frozen=True)
class KubernetesLabShape(LabShape):
    """What can be chosen of a Kubernetes lab; its `nodes` are the real ones."""

    name: str = DEFAULT
    nodes: int = 2
    gpus: int = DGX_GPUS
    virtual_nodes: int = 140
    grace_s: int = 30
    """How long a node may be silent before Kubernetes gives it up."""

    def virtual_hosts(self) -> list[str]:
        """Return the names of the nodes that KWOK plays."""
        width = max(3, len(str(self.virtual_nodes)))
        return [f"dgx{number:0{width}}" for number in range(1, self.virtual_nodes + 1)]

    def addresses(self) -> dict[str, str]:
        """Give every machine an address on the lab's own network."""
        return {CONTROL: CONTROL_ADDRESS} | {host: f"10.77.1.{i}" for i, host in enumerate(self.hosts(), 1)}

    def pod_network(self, host: str) -> str:
        """Return the network of the Kubernetes pods of a node."""
        return f"10.78.{self.hosts().index(host) + 1}.0/24"

    def words(self) -> str:
        """Return the shape in words."""
        real = f"{self.nodes} node{'' if self.nodes == 1 else 's'} of {self.gpus} GPUs"
        return f"{real}, {self.virtual_nodes} virtual" if self.virtual_nodes else real


@dataclass(frozen=True)
class LabPorts:
    """The ports of this machine's loopback that lead into the lab; chosen once, as images are named after one."""

    api: int
    registry: int

    def image(self, name: str = IMAGE) -> str:
        """Return the name of an image in the lab's registry."""
        return f"localhost:{self.registry}/{name}"


def check(wanted: KubernetesLabShape) -> None:
    """Refuse a shape that cannot be made."""
    check_name(wanted.name)
    limits = (("--nodes", wanted.nodes, MAX_NODES), ("--gpus", wanted.gpus, MAX_GPUS))
    for option, value, most in (*limits, ("--virtual-nodes", wanted.virtual_nodes, MAX_VIRTUAL)):
        if not 0 <= value <= most:
            raise refuse(f"a Kubernetes lab takes 0 to {most}, not {value}", field=option)
    if not wanted.nodes + wanted.virtual_nodes:
        raise refuse("a lab without any node runs nothing", field="--nodes")


def read(folder: Path) -> tuple[KubernetesLabShape, LabPorts] | None:
    """Return shape and ports of the lab in a folder; None where there is no Kubernetes lab."""
    return kept(folder, KIND, lambda lab: (KubernetesLabShape(**lab["shape"]), LabPorts(**lab["ports"])))


def write(folder: Path, shape: KubernetesLabShape, ports: LabPorts) -> None:
    """Keep shape and ports in the lab's folder."""
    keep(folder, KIND, shape=asdict(shape), ports=asdict(ports))


def pod_text(folder: Path, shape: KubernetesLabShape, ports: LabPorts) -> str:
    """Return the pod file of a lab: DGX A100 nodes, in scalable units, under one Kubernetes."""
    scheduler = {
        "kind": "kubernetes",
        "context": shape.name,
        "kubeconfig": str(folder / "kubeconfig"),
        "namespace": NAMESPACE,
        "image": ports.image(),
        "claim": CLAIM,
    }
    unit = max(1, min(_UNIT, (shape.nodes + shape.virtual_nodes) // 2))
    groups = "".join(_group(hosts, gpus) for hosts, gpus in _groups(shape))
    return f"""\
name: {shape.name}
title: A Kubernetes cluster on one machine, made by `podwright lab`
nodes:
{groups}fabrics:
  compute: {{scalable_unit: {unit}}}
schedulers:
  - {json.dumps(scheduler)}
"""


def _groups(shape: KubernetesLabShape) -> list[tuple[str, int]]:
    """Return the host list and the GPUs of each group. Virtual nodes come first, so that they fill whole units."""
    groups = [(shape.virtual_hosts(), DGX_GPUS), (shape.hosts(), shape.gpus)]
    return [(fold_hosts(hosts), gpus) for hosts, gpus in groups if hosts]


def _group(hosts: str, gpus: int) -> str:
    return f'  - hosts: "{hosts}"\n    model: {model(gpus)}\n'
