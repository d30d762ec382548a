"""What a node of a run asks of Kubernetes, by the names the cluster has for it; and what it cannot give."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.clients.kubernetes.quantities import size_text
from podwright.engines.kubernetes.facts import KubernetesFacts, KubernetesNodeKind
from podwright.spec.problems import short
from podwright.theme.words import format_size

if TYPE_CHECKING:
    from podwright.spec import NodeModel, Workload

Problem = tuple[str, str, str | None]
GPU, SHARED_GPU, MIG = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-"


def limits(workload: Workload, facts: KubernetesFacts, model: NodeModel | None) -> dict[str, str | int]:
    """Return the limits of the pilot's container, which are its requests too: only so are its cores its own."""
    resources = workload.resources
    amounts: dict[str, str | int] = {}
    if resources.cpus is not None:
        amounts["cpu"] = resources.cpus
    if resources.memory_bytes is not None:
        amounts["memory"] = size_text(resources.memory_bytes)
    if resources.gpus:
        amounts[gpu_name(workload, facts)] = resources.gpus
    return amounts


@dataclass(frozen=True)
class RdmaShare:
    """The RDMA devices of a node, and how many of them a run gets that has some of its GPUs."""

    names: tuple[str, ...] = ()
    count: int = 0

    def of(self, run_id: str) -> dict[str, int]:
        """Return the devices of one run: others that share the node get others, as their ids differ."""
        if not self.names:
            return {}
        first = hashlib.sha256(run_id.encode()).digest()[0] % len(self.names)
        if self.count == len(self.names):
            first = 0
        turned = self.names[first:] + self.names[:first]
        return dict.fromkeys(turned[: self.count], 1)


def rdma_share(workload: Workload, facts: KubernetesFacts, model: NodeModel | None) -> RdmaShare:
    """Return as many of a node's RDMA devices as the run has of its GPUs, and all where it has none."""
    if not workload.resources.rdma:
        return RdmaShare()
    names, gpus = tuple(rdma_names(facts, model)), workload.resources.gpus
    there = model.gpus.count if model and model.gpus else 0
    if not gpus or gpus >= there:
        return RdmaShare(names, len(names))
    return RdmaShare(names, math.ceil(len(names) * gpus / there))


def gpu_name(workload: Workload, facts: KubernetesFacts) -> str:
    """Return what a GPU is called: slices have names of their own, and so have shared GPUs where a site wants it."""
    names = facts.resource_names()
    profile = workload.resources.mig
    if profile is not None:
        return MIG + profile.replace("+", ".")
    if SHARED_GPU in names and GPU not in names:
        return SHARED_GPU
    return GPU


def rdma_names(facts: KubernetesFacts, model: NodeModel | None) -> list[str]:
    """Return the devices of the compute fabric.

    Where the cluster says what it has, that counts; of names that end in a number those of the compute ports, as
    further ones lead to storage. Else one name for each compute port, as bring-up gives them.
    """
    offered = [name for name in facts.resource_names() if re.match(r"rdma/|[\w.-]+/\w*(rdma|roce|hca)", name)]
    ports = [nic for nic in model.nics if nic.kind == "compute"] if model else []
    if not offered and facts.nodes is None:
        return port_names(len(ports) or 1)
    numbered = [name for name in offered if re.search(r"\d$", name)]
    wanted = [name for name in numbered if int(re.findall(r"\d+$", name)[0]) < len(ports)]
    if ports and len(wanted) == len(ports):
        return wanted
    return offered


def port_names(count: int) -> list[str]:
    """Return what the RDMA shared device plugin is told to call the compute ports."""
    return [f"rdma/shared_ib{index}" for index in range(count)]


def problems(workload: Workload, facts: KubernetesFacts, model: NodeModel | None) -> Iterator[Problem]:
    """Yield what no node of the cluster has; else how many nodes have all of it, where those are too few."""
    if facts.nodes is None:
        return
    asked = {**limits(workload, facts, model), **rdma_share(workload, facts, model).of("")}
    wanted = {name: amount_of(workload, name, value) for name, value in asked.items()}
    most = {name: facts.most(name) for name in wanted}
    lacking = [name for name, amount in wanted.items() if amount > most[name]]
    for name in lacking:
        yield _lack(workload, name, wanted[name], most[name], facts)
    if workload.resources.rdma and not rdma_names(facts, model):
        hint = "the RDMA shared device plugin makes them known: `podwright pod up`"
        yield "resources.rdma", "no node of the cluster offers RDMA devices (rdma/...)", hint
    room = sum(kind.count * _fit(kind, wanted) for kind in facts.nodes)
    asked_for = workload.allocated_nodes
    if not lacking and room < asked_for:
        nodes = sum(kind.count for kind in facts.nodes)
        yield "nodes", f"{asked_for} are asked for; the {nodes} nodes of the cluster hold {room} such", None


def amount_of(workload: Workload, name: str, value: str | int) -> int:
    """Return a limit as a number: memory is written with a unit."""
    if name == "memory":
        return workload.resources.memory_bytes or 0
    return int(value)


def _fit(kind: KubernetesNodeKind, wanted: dict[str, int]) -> int:
    """Return how many nodes of the run one node of the cluster could hold if it were empty."""
    rooms = [kind.resources.get(name, 0) // amount for name, amount in wanted.items() if amount]
    return min(rooms, default=1_000_000)


def _lack(workload: Workload, name: str, wanted: int, most: int, facts: KubernetesFacts) -> Problem:
    if name == "memory":
        message = f"{format_size(wanted)} per node is asked for; the largest node gives {format_size(most)}"
        return "resources.memory", message, None
    if name == "cpu":
        return "resources.cpus", f"{wanted} cores per node are asked for; the largest node gives {most}", None
    if name.startswith(MIG):
        slices = [name.removeprefix(MIG) for name in facts.resource_names() if name.startswith(MIG)]
        hint = f"it has {', '.join(slices)}" if slices else "it has whole GPUs only"
        message = f'the cluster has no {wanted} slices "{short(workload.resources.mig or "")}" on one node'
        return "resources.mig", message, hint
    if name in (GPU, SHARED_GPU):
        message = f"{wanted} GPUs per node are asked for; the largest node of the cluster has {most}"
        return "resources.gpus", message, "the GPU operator makes them known" if most == 0 else None
    return "resources.rdma", f"no node of the cluster offers {name}", None
