"""Which nodes a job has, and what the fabric between them lets through: whole, or with something broken.

Routes are taken as evenly spread, which adaptive routing and the fat-tree engine of a subnet manager come near to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any

from podwright.design.predict.collectives import CollectiveJob, Wires, needs_network, wires_of
from podwright.design.requirements import requirements_of
from podwright.design.sizing import size_compute
from podwright.design.topology import topology_of
from podwright.spec.problems import refuse, short

if TYPE_CHECKING:
    from podwright.spec import Pod

ORDERS = ("in order", "scattered")
# SHARP's reductions of large messages came with 200 Gb/s switches.
SHARP_SPEED_GBPS = 200.0


@dataclass(frozen=True, slots=True)
class Climb:
    """A leaf switch: its ports for each node, its links up, the spines these go to, and the leaves that share those.

    Units whose leaves share no spine meet in the core, as pods do, where the taper counts.
    """

    ports_per_node: int
    uplinks: int
    spines: int
    leaves: int
    taper: float = 1.0


@dataclass(frozen=True, slots=True)
class Placement:
    """The nodes of a job: how many in each scalable unit, in how many pods, and the way up from a leaf."""

    hosts: tuple[str, ...]
    per_unit: tuple[int, ...]
    wires: Wires
    climb: Climb | None = None
    in_network: bool = False
    pods: int = 1
    domains: tuple[int, ...] = ()
    """How many of the nodes are in each NVLink domain; nothing where a node is one by itself."""

    @property
    def gpus(self) -> int:
        """Return the GPUs of all nodes."""
        return len(self.hosts) * self.wires.gpus

    @property
    def machines(self) -> int:
        """Return how many machines the job has for its GPUs: NVLink domains, or nodes."""
        return len(self.domains) or len(self.hosts)

    def first(self, nodes: int) -> Placement:
        """Return the placement of the first so many nodes in the same domains."""
        domains, left = [], nodes
        for count in self.domains:
            domains.append(min(count, left))
            left -= domains[-1]
        return replace(self, hosts=self.hosts[:nodes], domains=tuple(filter(None, domains)))

    @property
    def span(self) -> str:
        """Return the widest thing the job crosses."""
        if len(self.hosts) == 1:
            return "one node"
        if self.domains and self.pods == 1:
            count = len(self.domains)
            return "one NVLink domain" if count == 1 else f"{count} NVLink domains"
        if self.pods > 1:
            return f"{self.pods} pods"
        return "one scalable unit" if len(self.per_unit) == 1 else f"{len(self.per_unit)} scalable units"


@dataclass(frozen=True, slots=True)
class BrokenPart:
    """Something broken and what of the wires is left to a job, with its ranks in order and scattered."""

    what: str
    in_order: float
    scattered: float

    def as_json(self) -> dict[str, Any]:
        """Return it as the acceptance sheet lists it."""
        left = round(self.in_order, 4), round(self.scattered, 4)
        return {"what": self.what, "left_in_order": left[0], "left_scattered": left[1]}


def place(pod: Pod, hosts: Sequence[str], pods: int = 1) -> Placement:
    """Return where hosts stand; they must be alike, since a collective is as fast as its slowest member."""
    models = {pod.model_of(host).name or pod.model_of(host).title: pod.model_of(host) for host in hosts}
    if len(models) > 1:
        names = " and ".join(str(name) for name in models)
        raise refuse(f"these nodes are not alike: {names}", hint="name nodes of one model with --hosts")
    topology = topology_of(pod).part(hosts)
    counts = tuple(len(unit.hosts) for unit in topology.units)
    domains = tuple(len(block.hosts) for block in topology.blocks)
    fabric = pod.compute_fabric()
    wires = wires_of(next(iter(models.values())), fabric.switch if fabric else None)
    placement = Placement(tuple(hosts), counts, wires, _climb(pod), _reduces_in_network(pod), pods, domains)
    needs_network(job(placement))
    return placement


def _reduces_in_network(pod: Pod) -> bool:
    fabric = pod.compute_fabric()
    if fabric is None or fabric.switch is None:
        return False
    switch = fabric.switch
    return switch.kind == "infiniband" and (switch.speed_gbps or 0) >= SHARP_SPEED_GBPS


def first_hosts(pod: Pod, count: int) -> list[str]:
    """Return the first so many compute hosts with GPUs."""
    hosts = [host for host in pod.compute_hosts() if pod.model_of(host).gpus]
    if count > len(hosts):
        raise refuse(
            f"the pod {short(pod.name)} has {len(hosts)} nodes with GPUs, not {count}", hint=f"ask for {len(hosts)}"
        )
    return hosts[:count]


def job(placement: Placement, order: str = "in order", climb: Climb | None = None) -> CollectiveJob:
    """Return the job as the models see it; `scattered` is the worst order of ranks: every neighbour in another unit."""
    share = _share(placement, order, climb or placement.climb)
    return CollectiveJob(placement.machines, _machine_wires(placement), share, placement.in_network)


def _machine_wires(placement: Placement) -> Wires:
    """Return what one machine offers: of NVLink domains what the smallest has, all of whose ports carry its share."""
    if not placement.domains:
        return placement.wires
    nodes, wires = min(placement.domains), placement.wires
    gpus = ceil(placement.gpus / len(placement.domains))
    return replace(wires, gpus=gpus, nics=nodes * wires.nics)


def failures(placement: Placement) -> list[BrokenPart]:
    """Return what is left of the wires when one thing is broken; only what this job would feel."""
    nics = _machine_wires(placement).nics
    if placement.machines == 1:
        return []
    left = (nics - 1) / nics
    broken_parts = [BrokenPart("port of a node", left, left)]
    climb = placement.climb
    if climb is None or (len(placement.per_unit) == 1 and placement.pods == 1):
        return broken_parts
    cases = (
        ("leaf-spine link", replace(climb, uplinks=climb.uplinks - 1)),
        ("spine switch", replace(climb, uplinks=climb.uplinks - ceil(climb.uplinks / climb.spines))),
    )
    intact = {order: _share(placement, order, climb) for order in ORDERS}
    for what, broken in cases:
        after = [_share(placement, order, broken) / intact[order] for order in ORDERS]
        broken_parts.append(BrokenPart(what, *after))
    return broken_parts


def _share(placement: Placement, order: str, climb: Climb | None) -> float:
    """Return the part of the ports' bandwidth that gets through the narrowest place on the way.

    In order, one neighbour of each unit lies outside it, or all nodes of an NVLink domain; scattered, all do.
    Between pods the core's taper counts.
    """
    if climb is None or (len(placement.per_unit) == 1 and placement.pods == 1):
        return 1.0
    outside = max(placement.per_unit)
    if order == "in order":
        outside = max(placement.domains, default=1)
    width = float(climb.uplinks)
    if placement.pods > 1 or len(placement.per_unit) > climb.leaves:
        width /= climb.taper
    return min(1.0, width / (climb.ports_per_node * outside))


def _climb(pod: Pod) -> Climb | None:
    """Return a leaf's way up, as the pod's design has it."""
    fabric = pod.compute_fabric()
    if fabric is None or fabric.switch is None:
        return None
    compute = requirements_of(pod).compute
    if compute is None:
        return None
    size = size_compute(compute)
    return Climb(compute.rail_ports, size.leaf_up, size.spines_per_plane, size.plane_leaves, compute.taper)
